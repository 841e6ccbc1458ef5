"""Whether a release's promise follows from its own numbers: everything is derived again, nothing is taken on trust.

The noise of each marginal and ε of each choice are what was done; ε, δ, ρ and the shares are what is claimed. Who reads
a release needs none of the data holder's libraries for this.
"""

import math

import numpy as np
from scipy.stats import chi2

from noisewise.artifacts.manifest import Manifest
from noisewise.artifacts.release import Release
from noisewise.errors import BudgetError, NoisewiseError
from noisewise.noisy_counts import NoisyCounts, PrivacyStatement
from noisewise.privacy.accounting import MIN_STDDEV
from noisewise.privacy.noise import require_sound_version
from noisewise.privacy.statement import loss_of

ALPHA = 1e-9
"""How often noise as it should be is taken for noise that does not fit the claim."""
_ROUNDING = 1e-9


def promise_gaps(manifest: Manifest) -> list[str]:
    """What of the promise does not follow from the manifest's own numbers; empty if all does."""
    try:
        return [*_derived_again(manifest.privacy), *_noise_as_stated(manifest), *_sound(manifest)]
    except BudgetError as error:
        return [f"The privacy statement makes no sense: {error}"]


def _derived_again(privacy: PrivacyStatement) -> list[str]:
    if not privacy.steps:
        return ["The privacy statement lists no private act, so nothing is promised."]
    gaps = []
    loss = loss_of(privacy)
    if not (0 < privacy.delta < 1 and 0 < privacy.epsilon < math.inf):
        return [f"epsilon = {privacy.epsilon:g} and delta = {privacy.delta:g} are no privacy parameters."]
    needed = loss.epsilon(privacy.delta)
    if needed > privacy.epsilon * (1 + _ROUNDING):
        gaps.append(f"The noise costs epsilon {needed:.6g} at delta {privacy.delta:.3g}, not {privacy.epsilon:.6g}.")
    if not math.isclose(loss.rho, privacy.rho, rel_tol=_ROUNDING):
        gaps.append(f"The noise costs rho {loss.rho:.6g}, not {privacy.rho:.6g}.")
    stated = math.fsum(step.rho for step in privacy.steps)
    if not math.isclose(stated, privacy.rho, rel_tol=_ROUNDING):
        gaps.append(f"The acts' rho add up to {stated:.6g}, not to {privacy.rho:.6g}.")
    for step in privacy.steps:
        own = loss_of(privacy.model_copy(update={"steps": (step,)})).rho
        if not math.isclose(own, step.rho, rel_tol=_ROUNDING):
            gaps.append(f"The act {step.name!r} costs rho {own:.6g}, not {step.rho:.6g}.")
    shares = math.fsum(step.share for step in privacy.steps)
    if not math.isclose(shares, 1.0, rel_tol=_ROUNDING):
        gaps.append(f"The acts' shares of the budget add up to {shares:.6g}, not to 1.")
    return gaps


def _noise_as_stated(manifest: Manifest) -> list[str]:
    stated = tuple(stddev for step in manifest.privacy.steps if step.kept for stddev in step.stddevs)
    listed = tuple(record.noise_stddev for record in manifest.marginals)
    if stated != listed:
        return [f"The statement tells the noise of {len(stated)} marginals, and other noise is listed with them."]
    return []


def _sound(manifest: Manifest) -> list[str]:
    gaps = []
    if manifest.privacy.delta >= 1 / manifest.rows:
        gaps.append(f"delta = {manifest.privacy.delta:g} is not below 1/rows: it would allow giving away whole rows.")
    try:
        require_sound_version(manifest.software.get("opendp", "none"))
    except BudgetError as error:
        gaps.append(str(error))
    return gaps


def count_gaps(counts: NoisyCounts) -> list[str]:
    """Whether the noisy counts look like counts of so many rows with so much noise: each sum, and all together."""
    gaps, squares = [], []
    for measurement in counts.measurements:
        size = measurement.stddev * math.sqrt(measurement.values.size)
        off = abs(float(np.sum(measurement.values, dtype=np.float64)) - counts.rows)
        squares.append((off, size))
        if chi2.sf((max(off - 0.5, 0.0) / size) ** 2, 1) < ALPHA:
            gaps.append(
                f"The counts of {' × '.join(measurement.marginal)} add up to {counts.rows + off:,.0f} or so off: "
                f"{off:,.0f} from the {counts.rows:,} rows, too far for noise of {measurement.stddev:g} in each."
            )
    least = math.fsum(((off + 0.5) / size) ** 2 for off, size in squares)
    if squares and chi2.cdf(least, len(squares)) < ALPHA:
        gaps.append("The sums of the counts are nearer to the number of rows than the stated noise lets them be.")
    return gaps


def release_gaps(release: Release) -> list[str]:
    """What of the promise does not follow from a release's own numbers, manifest and counts."""
    manifest = release.manifest()
    gaps = promise_gaps(manifest)
    try:
        counts = release.noisy_counts()
    except NoisewiseError:
        return gaps  # `damage` says it
    if any(m.stddev < MIN_STDDEV for m in counts.measurements):
        gaps.append(f"Some noise is below {MIN_STDDEV:g}: too little for integer noise to protect anybody.")
    return [*gaps, *count_gaps(counts)]


def best_guess(epsilon: float, delta: float, false_alarms: float = 0.05) -> float:
    """How often somebody can be right who may be wrong in so many cases, whatever they know: at most this.

    The power of any test between two neighbouring tables at the level `false_alarms`: by the definition of (ε, δ)
    at most e^ε·level + δ, and at most 1 − e^−ε·(1 − level − δ).
    """
    return min(math.exp(epsilon) * false_alarms + delta, 1 - math.exp(-epsilon) * (1 - false_alarms - delta), 1.0)
