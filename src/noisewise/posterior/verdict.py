"""The verdict on chains: judged on the expected counts of all measured cells, what synthetic data depend on."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from noisewise.posterior.diagnostics import ess_bulk, ess_tail, rhat
from noisewise.posterior.result import Verdict

RHAT_LIMIT = 1.01
ESS_LIMIT = 400
SUSPECTS = 32
"""Cells that are looked at first while chains run."""
DIVERGENT_SHARE = 0.002
"""Share of divergent draws from which on parts of the posterior may have been missed."""

Counts = Float[np.ndarray, "chains draws cells"]


@dataclass(frozen=True, kw_only=True)
class Convergence:
    """The worst figures over all measured cells."""

    rhat: float = math.inf
    """Largest rank-normalised split R-hat."""
    ess: float = 0.0
    """Smallest effective number of draws, bulk or tail."""
    suspects: tuple[int, ...] = ()
    """The cells with the largest R-hat."""

    @property
    def enough(self) -> bool:
        """Whether the chains agree and have drawn enough."""
        return self.rhat <= RHAT_LIMIT and self.ess >= ESS_LIMIT


def convergence(counts: Counts, suspects: tuple[int, ...] = ()) -> Convergence:
    """Judge the expected counts of all draws; the other cells only if the suspects pass."""
    if suspects:
        found = _judged(counts[..., suspects])
        if not found.enough:
            return replace(found, suspects=suspects)
    return _judged(counts)


def _judged(counts: Counts) -> Convergence:
    each = rhat(counts)
    worst, suspects = float(each.max()), tuple(np.argsort(-each)[:SUSPECTS].tolist())
    if worst > 1.5 * RHAT_LIMIT:  # far from done: no need to look further
        return Convergence(rhat=worst, suspects=suspects)
    return Convergence(rhat=worst, ess=float(min(ess_bulk(counts).min(), ess_tail(counts).min())), suspects=suspects)


def too_many(divergences: int, draws: int) -> bool:
    """Whether so many draws diverged that parts of the posterior may have been missed."""
    return divergences > DIVERGENT_SHARE * draws


def verdict_on(counts: Counts, divergences: int, gradients: int, step: float, interrupted: bool) -> Verdict:
    """The verdict in words and numbers."""
    worst = rhat(counts).max()
    ess = min(ess_bulk(counts).min(), ess_tail(counts).min())
    chains, draws, _ = counts.shape
    reasons = []
    if interrupted:
        reasons.append(f"Sampling was interrupted after {draws} draws of each chain.")
    if not worst <= RHAT_LIMIT:
        reasons.append(f"The chains disagree: R-hat = {worst:.3f} on an expected count ({RHAT_LIMIT} is good).")
    if not ess >= ESS_LIMIT:
        reasons.append(f"Too few effective draws: {ess:.0f} for an expected count ({ESS_LIMIT} are enough).")
    if too_many(divergences, chains * draws):
        reasons.append(f"{divergences} of {chains * draws} draws diverged: parts of the posterior may be missed.")
    said = f"{chains} chains of {draws} draws: R-hat at most {worst:.3f}, {ess:.0f} effective draws or more."
    numbers = {
        "rhat": float(min(worst, 99.0)),
        "ess": float(ess),
        "divergences": float(divergences),
        "draws": float(draws),
        "gradients": float(gradients),
        "step": float(step),
    }
    summary = f"The chains have not converged. {said}" if reasons else f"The chains agree. {said}"
    return Verdict(trusted=not reasons, summary=summary, reasons=tuple(reasons), numbers=numbers)
