"""`fit`: from noisy counts to a posterior. Post-processing: it costs no privacy, however often it is run."""

import dataclasses
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from noisewise.errors import FitError
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.hmc import Hmc, hmc_draws
from noisewise.posterior.laplace import Laplace, dimensions, laplace_draws
from noisewise.posterior.layout import Layout
from noisewise.posterior.nuts import Nuts, nuts_draws
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.posterior.result import FitRecord, Posterior, Verdict
from noisewise.posterior.verdict import verdict_on
from noisewise.progress import Progress, silent

Method = Hmc | Laplace | Nuts
CHAINS: dict[str, Any] = {"Hmc": Hmc, "Nuts": Nuts}
"""The methods that run chains, by name."""
METHODS = CHAINS | {"Laplace": Laplace}
"""All methods, by name."""
QUICK_DIMENSIONS = 250
"""Coordinates and latent counts up to which `Laplace` is tried first where no method is given."""


def fit(
    noisy_counts: NoisyCounts,
    method: Method | None = None,
    *,
    prior: NormalPrior | None = None,
    cells: Literal["all", "canonical"] = "all",
    seed: int = 0,
    progress: Progress = silent,
) -> Posterior:
    """Fit the maximum-entropy model to noisy counts, with the noise in the likelihood.

    Without a method the quickest is used whose verdict is good: `Laplace` where there are not many parameters, then
    `Hmc`, then `Nuts`; `posterior.record` says which and why. The same noisy counts, settings and seed give the same
    posterior. Look at `posterior.verdict` before using it: a posterior that could not be computed well says so.
    """
    prior = prior or NormalPrior()
    problem = Problem.of(noisy_counts, prior, cells)
    if problem.model.parameters == 0:
        raise FitError("Every measured column has a single level: there is nothing to estimate. Add levels or columns.")
    if seed < 0:
        raise FitError(f"seed={seed} must not be negative.")
    if method is None:
        method, choice, theta, verdict = _chosen(problem, seed, progress)
    else:
        choice, (theta, verdict) = "", _drawn(problem, method, seed, progress)
    if not np.isfinite(theta).all():
        raise FitError("The posterior is not finite. Check the noisy counts, their noise and the prior.")
    record = FitRecord(
        method=type(method).__name__,
        settings=dataclasses.asdict(method),
        prior_stddev=prior.stddev,
        cells=cells,
        seed=seed,
        choice=choice,
    )
    return Posterior(noisy_counts=noisy_counts, theta=theta, verdict=verdict, record=record)


def extend(posterior: Posterior, *, progress: Progress = silent) -> Posterior:
    """Add as many draws again, by the same method, and judge all of them together.

    More draws cost no privacy. They get a seed of their own, derived from the posterior's, so that the same
    posterior is always extended in the same way.
    """
    record = posterior.record
    times = record.extended + 1
    problem = Problem.of(posterior.noisy_counts, NormalPrior(stddev=record.prior_stddev), record.cells)  # type: ignore[arg-type]
    seed = int(np.random.SeedSequence([record.seed, times]).generate_state(1)[0])
    more, verdict = _drawn(problem, METHODS[record.method](**record.settings), seed, progress)
    kept = min(more.shape[1], posterior.theta.shape[1])
    theta = np.concatenate([posterior.theta[:, :kept], more[:, :kept]])
    together = _chains_verdict if record.method in CHAINS else _weighted_verdict
    return Posterior(
        noisy_counts=posterior.noisy_counts,
        theta=theta,
        verdict=together(problem, theta, posterior.verdict, verdict),
        record=record.model_copy(update={"extended": times}),
    )


def _chains_verdict(problem: Problem, theta: np.ndarray, old: Verdict, new: Verdict) -> Verdict:
    """Chains are judged anew, old and new together."""
    numbers = {k: new.numbers[k] + old.numbers.get(k, 0.0) for k in ("divergences", "gradients")}
    counts = np.array([problem.rows * problem.model.probabilities(draw) for draw in theta.reshape(-1, theta.shape[2])])
    return verdict_on(
        counts.reshape(*theta.shape[:2], -1),
        int(numbers["divergences"]),
        int(numbers["gradients"]),
        new.numbers["step"],
        any("interrupted" in reason for reason in new.reasons),
    )


def _weighted_verdict(problem: Problem, theta: np.ndarray, old: Verdict, new: Verdict) -> Verdict:
    """Weighted draws are independent: the less good of the two verdicts, with the draws of both."""
    worse = max(old, new, key=lambda verdict: (not verdict.trusted, verdict.numbers["pareto_k"]))
    added = {k: old.numbers[k] + new.numbers[k] for k in ("ess", "proposals", "distinct")}
    return worse.model_copy(update={"numbers": worse.numbers | added})


Drawn = tuple[Float[np.ndarray, "chains draws parameters"], Verdict]


def _drawn(problem: Problem, method: Method, seed: int, progress: Progress) -> Drawn:
    if isinstance(method, Hmc):
        return hmc_draws(problem, method, seed, progress)
    if isinstance(method, Laplace):
        return laplace_draws(problem, method, seed, progress)
    import jax

    with jax.enable_x64(True):
        return nuts_draws(problem, method, seed, progress)


def _chosen(problem: Problem, seed: int, progress: Progress) -> tuple[Method, str, np.ndarray, Verdict]:
    """The quickest method whose verdict is good, with a sentence on why."""
    said = ""
    if dimensions(Layout.of(problem.model)) <= QUICK_DIMENSIONS:
        theta, verdict = laplace_draws(problem, Laplace(), seed, progress)
        if verdict.trusted:
            return Laplace(), "Laplace, the quick method, was tried first.", theta, verdict
        said = f"Laplace, the quick method, was tried first: {verdict.reasons[0]} "
    theta, verdict = hmc_draws(problem, Hmc(), seed, progress)
    said += "Hmc was tried next." if said else "Hmc was tried first."
    interrupted = any("interrupted" in reason for reason in verdict.reasons)
    if verdict.trusted or interrupted:
        return Hmc(), said, theta, verdict
    try:
        slow, better = _drawn(problem, Nuts(), seed, progress)
    except KeyboardInterrupt:
        return Hmc(), f"{said} Nuts was interrupted.", theta, verdict
    return Nuts(), f"{said[:-1]}: {verdict.reasons[0]}", slow, better
