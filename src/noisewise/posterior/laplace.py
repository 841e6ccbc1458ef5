"""Laplace's approximation: a normal distribution at the posterior's mode.

The mode is found in two phases. Fisher scoring with Levenberg-Marquardt damping climbs from the uniform
distribution: its curvature is positive definite everywhere, so it needs no good starting point. Newton steps
with the eigenvalues of the Hessian made positive then finish in the flat directions that cells lost in the noise leave.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from noisewise.errors import FitError, ModelError
from noisewise.posterior.diagnostics import pareto_k
from noisewise.posterior.problem import Problem
from noisewise.posterior.result import Verdict
from noisewise.progress import Progress

Vector = Float[np.ndarray, " parameters"]
Matrix = Float[np.ndarray, "parameters parameters"]

PARETO_LIMIT = 0.7
MAX_DENSE_CELLS = 3_000


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Approximate the posterior by a normal distribution in θ at its mode, as the paper's quick method does.

    Good when every cell's count is well above the noise. Where cells are lost in the noise the posterior is
    far from normal; the verdict says so (Pareto k̂ of the importance weights) and the result is not to be trusted.
    """

    draws: int = 1000
    """Number of draws taken from the approximation."""

    def __post_init__(self) -> None:
        if self.draws < 100:
            raise FitError(f"Laplace(draws={self.draws}) is too few to judge the approximation. Use 100 or more.")


def laplace_draws(
    problem: Problem, method: Laplace, seed: int, progress: Progress
) -> tuple[Float[np.ndarray, "chains draws parameters"], Verdict]:
    """Find the mode, draw from the normal at it, and judge the draws by their importance weights."""
    from noisewise.posterior import dense

    if problem.model.cells > MAX_DENSE_CELLS:
        raise ModelError(
            f"Laplace() works on dense matrices of up to {MAX_DENSE_CELLS:,} cells and this workload has "
            f"{problem.model.cells:,}. Use another method, or measure fewer or smaller marginals."
        )
    if seed < 0:
        raise FitError(f"seed={seed} must not be negative.")
    data, model = dense.dense_data(problem), problem.model
    progress("climbing to the mode", 0, 0)
    mode, decrement = find_mode(
        np.zeros(model.parameters),
        lambda theta: _as_numpy(dense.scoring_terms(theta, model, data)),
        lambda theta: np.asarray(dense.hessian(theta, model, data)),
        progress,
    )
    values, vectors = _eigen(-np.asarray(dense.hessian(mode, model, data)))
    floor = 1 / problem.prior.stddev**2
    definite = bool(values.min() > 0)
    scales = 1 / np.sqrt(np.maximum(values, floor) if not definite else values)
    normals = np.random.default_rng(seed).standard_normal((method.draws, model.parameters))
    draws = mode + (normals * scales) @ vectors.T
    progress("judging the approximation", 0, 0)
    log_density = np.asarray(dense.log_densities(draws, model, data))
    log_weights = log_density + 0.5 * (normals**2).sum(1)
    return draws[None], _verdict(log_weights, decrement, definite, float(values.min()))


def find_mode(
    start: Vector,
    scoring: Callable[[Vector], tuple[float, Vector, Matrix]],
    hessian: Callable[[Vector], Matrix],
    progress: Progress,
    max_steps: int = 60,
) -> tuple[Vector, float]:
    """Maximise a log density; returns the mode and the gain a last Newton step still promised.

    `scoring` gives value, gradient and a positive-definite curvature; `hessian` the second derivatives.
    """
    point, _ = _climb(start, scoring, lambda at: scoring(at)[2], progress, max_steps=max_steps, enough=1e-2)
    return _climb(point, scoring, lambda at: _positive(-hessian(at)), progress, max_steps=max_steps, enough=1e-8)


def _climb(
    point: Vector,
    scoring: Callable[[Vector], tuple[float, Vector, Matrix]],
    curvature: Callable[[Vector], Matrix],
    progress: Progress,
    *,
    max_steps: int,
    enough: float,
) -> tuple[Vector, float]:
    """Damped steps C⁻¹g until the promised gain gᵀC⁻¹g/2 is below `enough`."""
    value, gradient, _ = scoring(point)
    if not np.isfinite(value):
        raise FitError(
            "The posterior density cannot be computed at the start: the noise is too small beside the counts for "
            "double precision, or a noisy count is not a number. Check the noisy counts and their stddev."
        )
    damping = 1e-2
    matrix = curvature(point)
    promised = _gain(matrix, gradient)
    for step in range(max_steps):
        if promised < enough:
            break
        progress("climbing to the mode", step, max_steps)
        scaled = matrix + damping * np.diag(np.diag(matrix))
        candidate = point + np.linalg.solve(scaled, gradient)
        new_value, new_gradient, _ = scoring(candidate)
        if np.isfinite(new_value) and np.isfinite(new_gradient).all() and new_value > value:
            point, value, gradient = candidate, new_value, new_gradient
            matrix = curvature(point)
            promised = _gain(matrix, gradient)
            damping = max(damping / 10, 1e-12)
        else:
            damping *= 8
            if damping > 1e12:  # no representable step climbs: rounding decides here
                break
    return point, promised


def _gain(matrix: Matrix, gradient: Vector) -> float:
    return float(gradient @ np.linalg.solve(matrix, gradient)) / 2


def _positive(matrix: Matrix) -> Matrix:
    """The symmetric matrix with eigenvalues |λ|, at least 1e-6: descends from saddles instead of climbing them."""
    values, vectors = _eigen(matrix)
    return np.asarray((vectors * np.maximum(np.abs(values), 1e-6)) @ vectors.T)


def _eigen(matrix: Matrix) -> tuple[Vector, Matrix]:
    if not np.isfinite(matrix).all():
        raise FitError(
            "The curvature of the posterior cannot be computed in double precision. Check the noisy counts and their "
            "stddev, or use a prior with a smaller stddev."
        )
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors


def _as_numpy(terms: tuple[Any, Any, Any]) -> tuple[float, Vector, Matrix]:
    return float(terms[0]), np.asarray(terms[1]), np.asarray(terms[2])


def _verdict(log_weights: Float[np.ndarray, " draws"], decrement: float, definite: bool, smallest: float) -> Verdict:
    k, share = (pareto_k(log_weights), _share(log_weights)) if np.isfinite(log_weights).all() else (np.inf, 0.0)
    reasons = []
    if decrement > 1e-3:
        reasons.append(f"The mode was not reached: another step still promises {decrement:.2g} in log density.")
    if not definite:
        reasons.append("The curvature at the mode is not positive definite, so there is no normal approximation.")
    if not k < PARETO_LIMIT:
        reasons.append(
            f"The posterior is far from normal: Pareto k̂ = {k:.2f} (below {PARETO_LIMIT} is good). "
            "Cells lost in the noise are the usual cause."
        )
    trusted = not reasons
    summary = (
        f"The normal approximation is good (Pareto k̂ = {k:.2f})."
        if trusted
        else "Laplace's approximation is not to be trusted here."
    )
    finite_k = float(k) if np.isfinite(k) else float(np.sign(k) * 99)
    numbers = {
        "pareto_k": finite_k,
        "effective_share": share,
        "gain_left": decrement,
        "smallest_curvature": smallest,
    }
    return Verdict(trusted=trusted, summary=summary, reasons=tuple(reasons), numbers=numbers)


def _share(log_weights: Float[np.ndarray, " draws"]) -> float:
    """Share of the draws that are left when they are weighted to the posterior: (Σw)² / (draws · Σw²)."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (len(weights) * (weights**2).sum()))
