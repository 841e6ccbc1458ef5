"""The quick method: draws from a normal approximation, weighted to the posterior.

The approximation is made where the posterior is nearly normal, in the coordinates behind the monotone maps. Its draws
are weighted by the exact density and resampled, which makes them draws from the posterior itself wherever the weights
are tame. Pareto k̂, the shape of the weights' upper tail, says whether they are.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from noisewise.errors import FitError, ModelError
from noisewise.posterior import values
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.density import Density
from noisewise.posterior.diagnostics import pareto_k, pareto_smoothed
from noisewise.posterior.layout import Layout
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.normal import ROUNDS, Normal, closest_normal, evaluated, normal_at_mode
from noisewise.posterior.problem import Problem
from noisewise.posterior.recentred import around, carried
from noisewise.posterior.result import Verdict
from noisewise.posterior.verdict import ESS_LIMIT
from noisewise.progress import Progress

PARETO_LIMIT = 0.7
HOPELESS = 1.0
"""With a k̂ above this after the first round of proposals, no more are made."""
REMADE, FIRST_ROUNDS = 2, 4
"""How often maps are made anew around what a normal distribution expects, and the rounds of fitting it before."""
ROUND = 4_000
"""Proposals made before the first look at their weights."""
NOTHING = 600.0
"""Proposals whose log weight is this much below the largest have none; the logarithm stays finite."""
MAX_DIMENSIONS = 1_000
LIGHTEST_TAIL = 8
"""Least degrees of freedom of the proposals; as many as dimensions otherwise, at a third of the draws."""


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Approximate the posterior by a normal distribution where it is nearly one, and weight the draws to make it exact.

    The quickest method for up to a few hundred parameters. The verdict says by the importance weights whether the
    draws are right; where they are not, use `Hmc`, and the draws are of the approximation as it stands.
    """

    draws: int = 1_000
    """Number of draws that are kept."""
    proposals: int = 64_000
    """Most draws of the approximation that are made and weighted."""

    def __post_init__(self) -> None:
        if self.draws < 100:
            raise FitError(f"Laplace(draws={self.draws}) is too few to judge the approximation. Use 100 or more.")
        if self.proposals < max(ROUND, self.draws):
            raise FitError(
                f"Laplace(proposals={self.proposals}) is too few to judge the approximation. Use at least {ROUND:,}, "
                "and as many as there are draws."
            )


class _Proposals(NamedTuple):
    """Draws of the approximation, and what their weights say."""

    theta: Float[np.ndarray, "parameters proposals"]
    counts: Float[np.ndarray, "cells proposals"]
    log_weights: Float[np.ndarray, " proposals"]

    def judged(self) -> "_Judged":
        """Shape of the weights' tail, smoothed weights that add up to 1, and the effective number of draws."""
        highest = self.log_weights.max()
        if not np.isfinite(highest):
            return _Judged(math.inf, np.full(len(self.log_weights), 1 / len(self.log_weights)), 0.0)
        log_weights = np.maximum(self.log_weights, highest - NOTHING)
        weights = np.exp(pareto_smoothed(log_weights))
        weights /= weights.sum()
        return _Judged(pareto_k(log_weights), weights, effective(self.counts, weights))


class _Judged(NamedTuple):
    """The weights of proposals."""

    k: float
    weights: np.ndarray
    ess: float

    @property
    def good(self) -> bool:
        """Whether resampling gives draws from the posterior."""
        return self.k < PARETO_LIMIT and self.ess >= ESS_LIMIT


def laplace_draws(
    problem: Problem, method: Laplace, seed: int, progress: Progress
) -> tuple[Float[np.ndarray, "chains draws parameters"], Verdict]:
    """Fit the approximation, weight draws from it, resample them, and judge them by their weights."""
    progress("preparing", 0, 0)
    arrays = Arrays.of(problem)
    size = dimensions(arrays.layout)
    if size > MAX_DIMENSIONS:
        raise ModelError(
            f"Laplace() works with dense matrices of up to {MAX_DIMENSIONS:,} dimensions and this model has {size:,}. "
            "Use Hmc(), or measure fewer or smaller marginals."
        )
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):  # proposals may land where the density is 0
        density = Density(arrays, monotone_maps(arrays))
        start = normal_at_mode(density, progress)
        for _ in range(REMADE):
            points = closest_normal(density, start, FIRST_ROUNDS, random, progress).draws(max(4 * size, 400), random)
            old, density = density, around(density, points)
            points = carried(points, old, density)
            start = Normal(centre=points.mean(1), precision=np.linalg.inv(np.atleast_2d(np.cov(points))))
        normal = closest_normal(density, start, ROUNDS, random, progress)
        proposals, judged = _proposed(density, normal, method, random, progress)
    weights = judged.weights if judged.good else np.full(len(judged.weights), 1 / len(judged.weights))
    chosen = _resampled(weights, method.draws, random)
    return proposals.theta[:, chosen].T[None].copy(), _verdict(judged, len(np.unique(chosen)))


def dimensions(layout: Layout) -> int:
    """Number of coordinates and latent counts."""
    latent = sum(level.inner_cells.stop - level.inner_cells.start for level in layout.levels)
    return layout.model.parameters + latent


def _proposed(
    density: Density, normal: Normal, method: Laplace, random: np.random.Generator, progress: Progress
) -> tuple[_Proposals, _Judged]:
    """Propose, twice as many each time, until enough is left after weighting or there is no hope of it."""
    root, parts, made, ess = normal.roots()[0], [], 0, 0.0
    while True:
        count = min(max(ROUND, made), method.proposals - made)
        progress("weighting draws of the approximation", int(min(ess, ESS_LIMIT)), ESS_LIMIT)
        parts.append(_propose(density, normal.centre, root, count, random))
        made += count
        proposals = _Proposals(*(np.concatenate(of, -1) for of in zip(*parts, strict=True)))
        judged = proposals.judged()
        ess = judged.ess
        enough = judged.good and ess >= 1.5 * ESS_LIMIT
        hopeless = judged.k > HOPELESS or ess * method.proposals / made < ESS_LIMIT / 2
        if enough or hopeless or made >= method.proposals:
            return proposals, judged


def _propose(
    density: Density, centre: np.ndarray, root: np.ndarray, count: int, random: np.random.Generator
) -> _Proposals:
    """Draw from Student's t with the normal's centre and scale."""
    size, arrays = len(root), density.arrays
    freedom = max(size, LIGHTEST_TAIL)
    normals = random.standard_normal((size, count)) * np.sqrt(freedom / random.chisquare(freedom, count))
    points = centre[:, None] + root @ normals
    log_weights = evaluated(density, points)[0] + 0.5 * (freedom + size) * np.log1p((normals**2).sum(0) / freedom)
    at = values.values_at(arrays, density.maps(points[: arrays.coordinates])[0])
    return _Proposals(values.theta_of(arrays, at), values.expected_counts(arrays, at), log_weights)


def effective(counts: Float[np.ndarray, "cells draws"], weights: Float[np.ndarray, " draws"]) -> float:
    """Effective number of independent draws behind the mean and the 5 % tails of every expected count; the least.

    The weighted mean of h has variance Σ w² (h - mean)², independent draws would give Σ w (h - mean)² / number. Where a
    few weights rule, mean and deviations are both theirs, so that it is never more than 1 / Σ w².
    """
    found = float(1 / (weights**2).sum())
    for cell in counts:
        order = np.argsort(cell)
        ordered, cumulated = cell[order], np.cumsum(weights[order])
        low, high = ordered[np.minimum(np.searchsorted(cumulated, [0.05, 0.95]), len(ordered) - 1)]
        for of in (cell, cell <= low, cell <= high):
            squared = (of - weights @ of) ** 2 * weights
            spread = squared.sum()
            if spread > 0:
                found = min(found, float(spread / (squared * weights).sum()))
    return found


def _resampled(weights: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    """Proposals in proportion to their weights, by systematic sampling: each as often as expected, rounded."""
    ends = np.cumsum(weights)
    at = (np.arange(draws) + random.uniform()) / draws * ends[-1]
    return np.minimum(np.searchsorted(ends, at), len(weights) - 1)


def _verdict(judged: _Judged, distinct: int) -> Verdict:
    k, ess, made, reasons = judged.k, judged.ess, len(judged.weights), []
    if not k < PARETO_LIMIT:
        reasons.append(
            f"The posterior is far from the approximation: Pareto k̂ = {k:.2f} (below {PARETO_LIMIT} is good). "
            "Cells lost in the noise are the usual cause. Hmc() samples the posterior itself."
        )
    elif not ess >= ESS_LIMIT:
        reasons.append(
            f"Too few effective draws: {ess:.0f} of {made:,} are left for an expected count after weighting "
            f"({ESS_LIMIT} are enough). Allow more proposals, or use Hmc()."
        )
    if reasons:
        summary = "Laplace's approximation is not to be trusted here."
    else:
        summary = f"The weighted draws are good: Pareto k̂ = {k:.2f}, {ess:.0f} effective draws or more."
    numbers = {
        "pareto_k": float(k) if np.isfinite(k) else float(np.sign(k) * 99),
        "ess": ess,
        "effective_share": float(1 / (judged.weights**2).sum()) / made,
        "proposals": float(made),
        "distinct": float(distinct),
    }
    return Verdict(trusted=not reasons, summary=summary, reasons=tuple(reasons), numbers=numbers)
