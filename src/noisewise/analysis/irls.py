"""Many generalized linear models at once: the same rows, a different vector of counts for each fit.

All fits share the design matrix, so that one pass of Fisher scoring is two matrix products over the
distinct rows, whatever the number of rows that the counts add up to.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

MAX_STEPS = 30  # a separated logit moves by 1 per step, and past 36 its residuals round to 0 and look converged
CONVERGED = 1e-20
"""Largest squared step, in units of the standard errors of the coefficients, at convergence."""
STILL_MOVING = 1e-2
"""A coefficient whose last step still moves the linear predictor by more than this has no finite estimate."""
MAX_PRODUCTS = 4_000_000
"""Largest table of products of terms kept in memory, and largest block of (fits × rows) worked on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fits:
    """Coefficients and covariances of many fits."""

    values: Float[ndarray, "fits terms"]
    """The coefficients."""
    covariances: Float[ndarray, "fits terms terms"]
    """Inverse Fisher information times the scale."""
    estimable: Bool[ndarray, "fits terms"]
    """False where the rows do not determine the coefficient (an empty level, a collinear column)."""
    finite: Bool[ndarray, "fits terms"]
    """False where the likelihood has no maximum: the coefficient runs off to infinity (separation)."""
    deviance: Float[ndarray, " fits"]
    """Deviance at the estimate, without the penalty."""
    scale: Float[ndarray, " fits"]
    """The scale that multiplied the inverse information."""


def fit_many(
    matrix: Float[ndarray, "distinct terms"],
    outcome: Float[ndarray, " distinct"],
    counts: Float[ndarray, "fits distinct"],
    family: Any,
    ridge: float = 0.0,
    offset: Float[ndarray, " distinct"] | float = 0.0,
) -> Fits:
    """Maximise, for each row of `counts`, mean log-likelihood - ridge/2 · |coefficients|².

    `family` is a statsmodels family. Where the information is singular the minimum-norm step is taken, and
    the coefficients that the rows do not determine are marked.
    """
    block = max(1, MAX_PRODUCTS // len(matrix))
    parts = [
        _fit_block(matrix, outcome, counts[start : start + block], family, ridge, offset)
        for start in range(0, len(counts), block)
    ]
    if len(parts) == 1:
        return parts[0]
    return Fits(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Fits.__dataclass_fields__})


def _fit_block(matrix: Any, outcome: Any, counts: Any, family: Any, ridge: float, offset: Any) -> Fits:
    fits, terms = len(counts), matrix.shape[1]
    totals = counts.sum(axis=1)
    penalty = ridge * totals
    products = _Products(matrix)
    values = _start(matrix, outcome, counts, family, penalty, products, offset)
    deviance = _penalised(matrix, outcome, counts, family, penalty, values, offset)
    step = np.zeros((fits, terms))
    active = np.arange(fits)
    for _ in range(MAX_STEPS):
        weight, residual = _working(matrix, outcome, counts[active], family, values[active], offset)
        information = products.sum(weight) + penalty[active, None, None] * np.eye(terms)
        gradient = (weight * residual) @ matrix - penalty[active, None] * values[active]
        step[active] = _solve(information, gradient)
        moved, deviance[active] = _damped(
            matrix,
            outcome,
            counts[active],
            family,
            penalty[active],
            values[active],
            step[active],
            deviance[active],
            offset,
        )
        step[active], values[active] = moved - values[active], moved
        decrement = np.einsum("fi,fij,fj->f", step[active], information, step[active])
        active = active[decrement > CONVERGED]
        if active.size == 0:
            break
    moving = np.zeros((fits, terms), bool)
    moving[active] = np.abs(step[active]) * np.abs(matrix).max(axis=0) > STILL_MOVING
    return _finish(matrix, outcome, counts, family, penalty, values, ~moving, products, offset)


def _start(matrix: Any, outcome: Any, counts: Any, family: Any, penalty: Any, products: Any, offset: Any) -> ndarray:
    """One weighted least-squares step from the family's starting means, as is usual."""
    mean = _starting_means(outcome, counts, family)
    slope = family.link.deriv(mean)
    weight = counts / (slope**2 * family.variance(mean))
    target = family.link(mean) + (outcome - mean) * slope - offset
    information = products.sum(weight) + penalty[:, None, None] * np.eye(matrix.shape[1])
    return _solve(information, (weight * target) @ matrix)


def _starting_means(outcome: Any, counts: Any, family: Any) -> ndarray:
    if type(family).__name__ == "Binomial":
        return np.broadcast_to(family.starting_mu(outcome), counts.shape)
    average = (counts @ outcome / counts.sum(axis=1))[:, None]  # the families' own start ignores the counts
    return (outcome + average) / 2


def _working(matrix: Any, outcome: Any, counts: Any, family: Any, values: Any, offset: Any) -> tuple[ndarray, ndarray]:
    """Weights and residuals of the linear problem that one step of Fisher scoring solves."""
    with np.errstate(over="ignore"):
        mean = family.fitted(values @ matrix.T + offset)
    slope = family.link.deriv(mean)
    return counts / (slope**2 * family.variance(mean)), (outcome - mean) * slope


def _penalised(
    matrix: Any, outcome: Any, counts: Any, family: Any, penalty: Any, values: Any, offset: Any
) -> Float[ndarray, " fits"]:
    with np.errstate(all="ignore"):
        mean = family.fitted(values @ matrix.T + offset)
        deviance = (counts * family.resid_dev(outcome, mean) ** 2).sum(axis=1)
    return np.asarray(deviance + penalty * (values**2).sum(axis=1))


def _damped(
    matrix: Any, outcome: Any, counts: Any, family: Any, penalty: Any, values: Any, step: Any, before: Any, offset: Any
) -> tuple[ndarray, ndarray]:
    """Halve a step until the penalised deviance does not grow (by more than rounding)."""
    moved = values + step
    after = _penalised(matrix, outcome, counts, family, penalty, moved, offset)
    factor = np.ones(len(values))
    for _ in range(20):
        worse = ~(after <= before + 1e-9 * (1 + np.abs(before)))
        if not worse.any():
            break
        factor[worse] /= 2
        moved[worse] = values[worse] + factor[worse, None] * step[worse]
        after[worse] = _penalised(matrix, outcome, counts[worse], family, penalty[worse], moved[worse], offset)
    return moved, after


def _finish(
    matrix: Any,
    outcome: Any,
    counts: Any,
    family: Any,
    penalty: Any,
    values: Any,
    finite: Any,
    products: Any,
    offset: Any,
) -> Fits:
    weight, _ = _working(matrix, outcome, counts, family, values, offset)
    information = products.sum(weight) + penalty[:, None, None] * np.eye(matrix.shape[1])
    inverse, estimable = _inverse(information)
    with np.errstate(over="ignore"):
        mean = family.fitted(values @ matrix.T + offset)
    scale = _scale(outcome, counts, family, mean, estimable)
    deviance = (counts * family.resid_dev(outcome, mean) ** 2).sum(axis=1)
    return Fits(
        values=values,
        covariances=inverse * scale[:, None, None],
        estimable=estimable,
        finite=finite,
        deviance=deviance,
        scale=scale,
    )


def _scale(outcome: Any, counts: Any, family: Any, mean: Any, estimable: Any) -> Float[ndarray, " fits"]:
    """1 for families without a scale, else Pearson's χ² over its degrees of freedom."""
    if type(family).__name__ in ("Binomial", "Poisson", "NegativeBinomial"):
        return np.ones(len(counts))
    pearson = (counts * (outcome - mean) ** 2 / family.variance(mean)).sum(axis=1)
    dof = counts.sum(axis=1) - estimable.sum(axis=1)
    return np.asarray(pearson / np.maximum(dof, 1))


class _Products:
    """Sums over rows of weight · term · term, as one matrix product where the table of products is small."""

    def __init__(self, matrix: Float[ndarray, "distinct terms"]):
        self.matrix = matrix
        self.terms = matrix.shape[1]
        small = matrix.size * self.terms <= MAX_PRODUCTS
        self.table = (matrix[:, :, None] * matrix[:, None, :]).reshape(len(matrix), -1) if small else None

    def sum(self, weight: Float[ndarray, "fits distinct"]) -> Float[ndarray, "fits terms terms"]:
        if self.table is not None:
            return np.asarray((weight @ self.table).reshape(len(weight), self.terms, self.terms))
        return np.stack(list(self._one_by_one(weight)))

    def _one_by_one(self, weight: Float[ndarray, "fits distinct"]) -> Iterator[ndarray]:
        for one in weight:
            yield (self.matrix * one[:, None]).T @ self.matrix


def _solve(information: Float[ndarray, "fits terms terms"], gradient: Float[ndarray, "fits terms"]) -> ndarray:
    scaled, unit = _unit_diagonal(information)
    try:
        solved = np.linalg.solve(scaled, (gradient / unit)[..., None])[..., 0]
        well = np.linalg.cond(scaled) < 1e12
    except np.linalg.LinAlgError:
        well = np.zeros(len(gradient), bool)
        solved = np.zeros_like(gradient)
    if not well.all():
        solved[~well] = (_pseudo_inverse(scaled[~well])[0] @ (gradient / unit)[~well][..., None])[..., 0]
    return np.asarray(solved / unit)


def _inverse(information: Float[ndarray, "fits terms terms"]) -> tuple[ndarray, ndarray]:
    """Inverse where there is one, else the pseudo-inverse; and which coefficients are determined."""
    scaled, unit = _unit_diagonal(information)
    inverse, null = _pseudo_inverse(scaled)
    return inverse / unit[:, :, None] / unit[:, None, :], null < 1e-6


def _unit_diagonal(information: ndarray) -> tuple[ndarray, ndarray]:
    """Scale terms to unit information, so that a column's units do not look like collinearity."""
    diagonal = np.diagonal(information, axis1=1, axis2=2)
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return information / unit[:, :, None] / unit[:, None, :], unit


def _pseudo_inverse(scaled: ndarray) -> tuple[ndarray, ndarray]:
    """Pseudo-inverse, and for each coefficient the part of it that lies in the null space."""
    eigenvalues, vectors = np.linalg.eigh(scaled)
    null = eigenvalues < 1e-12 * scaled.shape[-1]
    reciprocal = np.where(null, 0.0, 1 / np.where(null, 1.0, eigenvalues))
    inverse = (vectors * reciprocal[:, None, :]) @ vectors.transpose(0, 2, 1)
    return inverse, (vectors**2 * null[:, None, :]).sum(axis=2)
