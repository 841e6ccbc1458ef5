"""Many generalized linear models at once: the same rows, a different vector of counts for each fit.

All fits share the design matrix, so that one pass of Fisher scoring is two matrix products over the
distinct rows, whatever the number of rows that the counts add up to.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from noisewise.analysis.information import invert, solve

MAX_STEPS = 30  # a separated logit moves by 1 per step, and past 36 its residuals round to 0 and look converged
CONVERGED = 1e-20
"""Largest squared step, in units of the standard errors of the coefficients, at convergence."""
STILL_MOVING = 1e-2
"""Rows whose linear predictor the last step still moves by more than this (of 1 + its size) run off to infinity."""
SETTLED = 1e-6
"""A fit whose linear predictors move by more than this and less than `STILL_MOVING` did not converge."""
MAX_PRODUCTS = 4_000_000
"""Largest table of products of terms kept in memory, and largest block of (fits × rows) worked on."""
WITHOUT_SCALE = ("Binomial", "Poisson", "NegativeBinomial")


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Maximise, for each row of `counts`, mean log-likelihood - ridge/2 · |coefficients|²."""

    matrix: Float[ndarray, "distinct terms"]
    """Values of the terms in each distinct row."""
    outcome: Float[ndarray, " distinct"]
    """The outcome in each distinct row."""
    counts: Float[ndarray, "fits distinct"]
    """How often each row occurs in each fit, times the row's weight where there are weights."""
    rows: Float[ndarray, " fits"]
    """The number of rows of each fit, which the degrees of freedom of a scale are counted from."""
    family: Any
    """A statsmodels family."""
    ridge: float = 0.0
    """Weight of the ridge, per row."""

    def only(self, fits: Int[ndarray, " chosen"] | Bool[ndarray, " fits"] | slice) -> "Problem":
        """The same problem for some of the fits."""
        part = replace(self, counts=self.counts[fits], rows=self.rows[fits])
        part.__dict__["products"] = self.products  # depends on the matrix alone
        return part

    @cached_property
    def products(self) -> Float[ndarray, "distinct squares"] | None:
        """Products of all pairs of terms in each row; None where the table would be large."""
        rows, terms = self.matrix.shape
        if rows * terms**2 > MAX_PRODUCTS:
            return None
        return np.asarray((self.matrix[:, :, None] * self.matrix[:, None, :]).reshape(rows, -1))

    @cached_property
    def penalty(self) -> Float[ndarray, " fits"]:
        """The ridge's weight in each fit's total log-likelihood."""
        return np.asarray(self.ridge * self.counts.sum(axis=1))

    def mean(self, values: Float[ndarray, "fits terms"]) -> Float[ndarray, "fits distinct"]:
        """Expected outcome of each row in each fit."""
        with np.errstate(over="ignore"):
            return np.asarray(self.family.fitted(values @ self.matrix.T))

    def deviance(self, values: Float[ndarray, "fits terms"]) -> Float[ndarray, " fits"]:
        """Twice the log-likelihood lost against a perfect fit."""
        with np.errstate(all="ignore"):
            return np.asarray((self.counts * self.family.resid_dev(self.outcome, self.mean(values)) ** 2).sum(axis=1))

    def objective(self, values: Float[ndarray, "fits terms"]) -> Float[ndarray, " fits"]:
        """Deviance plus penalty: what a step must not increase."""
        with np.errstate(over="ignore"):
            return np.asarray(self.deviance(values) + self.penalty * (values**2).sum(axis=1))

    def linearised(self, mean: Float[ndarray, "fits distinct"]) -> tuple[ndarray, ndarray]:
        """Weights and working residuals of the least-squares problem that one step of Fisher scoring solves."""
        slope = self.family.link.deriv(mean)
        return self.counts / (slope**2 * self.family.variance(mean)), (self.outcome - mean) * slope

    def information(self, weight: Float[ndarray, "fits distinct"]) -> Float[ndarray, "fits terms terms"]:
        """Sum over rows of weight · term · term, plus the penalty's part."""
        terms = self.matrix.shape[1]
        if self.products is not None:
            total = (weight @ self.products).reshape(len(weight), terms, terms)
        else:
            total = np.stack([(self.matrix * one[:, None]).T @ self.matrix for one in weight])
        return np.asarray(total + self.penalty[:, None, None] * np.eye(terms))


def fit_many(problem: Problem) -> Fits:
    """Fit every row of counts, in blocks that keep memory small.

    Where the information is singular the minimum-norm step is taken, and the coefficients that the rows do
    not determine are marked.
    """
    block = max(1, MAX_PRODUCTS // len(problem.matrix))
    starts = range(0, len(problem.counts), block)
    parts = [_fit_block(problem.only(slice(start, start + block))) for start in starts]
    return Fits(**{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Fits)})


def _fit_block(problem: Problem) -> Fits:
    values = _start(problem)
    objective, step = problem.objective(values), np.zeros_like(values)
    active = np.arange(len(values))
    for _ in range(MAX_STEPS):
        here = problem.only(active)
        weight, residual = here.linearised(here.mean(values[active]))
        information = here.information(weight)
        gradient = (weight * residual) @ here.matrix - here.penalty[:, None] * values[active]
        proposed = solve(information, gradient)
        moved, objective[active] = _damped(here, values[active], proposed, objective[active])
        step[active], values[active] = moved - values[active], moved
        decrement = np.einsum("fi,fij,fj->f", proposed, information, proposed)
        active = active[decrement > CONVERGED]
        if active.size == 0:
            break
    finite = np.ones(values.shape, bool)
    finite[active] = _finite(problem.only(active), values[active], step[active])
    return _finish(problem, values, finite)


def _finite(
    problem: Problem, values: Float[ndarray, "fits terms"], step: Float[ndarray, "fits terms"]
) -> Bool[ndarray, "fits terms"]:
    """Which coefficients of fits that ran out of steps are finite all the same.

    Rows whose linear predictor runs off to infinity say nothing in the limit: finite is what the others determine.
    """
    if len(values) == 0:
        return np.ones(values.shape, bool)
    move = np.abs(step @ problem.matrix.T) / (1 + np.abs(values @ problem.matrix.T)) * (problem.counts > 0)
    _, determined = invert(problem.information(np.where(move > STILL_MOVING, 0.0, problem.counts)))
    converged = ((move <= SETTLED) | (move > STILL_MOVING)).all(axis=1)
    return np.asarray(determined & converged[:, None])


def _start(problem: Problem) -> Float[ndarray, "fits terms"]:
    """One weighted least-squares step from starting means between each outcome and the average."""
    mean = _starting_means(problem)
    weight, residual = problem.linearised(mean)
    target = problem.family.link(mean) + residual
    return solve(problem.information(weight), (weight * target) @ problem.matrix)


def _starting_means(problem: Problem) -> Float[ndarray, "fits distinct"]:
    if type(problem.family).__name__ == "Binomial":
        return np.broadcast_to(problem.family.starting_mu(problem.outcome), problem.counts.shape)
    average = problem.counts @ problem.outcome / problem.counts.sum(axis=1)
    return (problem.outcome + average[:, None]) / 2  # the families' own start ignores the counts


def _damped(
    problem: Problem,
    values: Float[ndarray, "fits terms"],
    step: Float[ndarray, "fits terms"],
    before: Float[ndarray, " fits"],
) -> tuple[ndarray, ndarray]:
    """Halve a step until the objective does not grow (by more than rounding)."""
    moved = values + step
    after = problem.objective(moved)
    factor = np.ones(len(values))
    for _ in range(20):
        worse = ~(after <= before + 1e-9 * (1 + np.abs(before)))
        if not worse.any():
            break
        factor[worse] /= 2
        moved[worse] = values[worse] + factor[worse, None] * step[worse]
        after[worse] = problem.only(worse).objective(moved[worse])
    return moved, after


def _finish(problem: Problem, values: Float[ndarray, "fits terms"], finite: Bool[ndarray, "fits terms"]) -> Fits:
    mean = problem.mean(values)
    weight, _ = problem.linearised(mean)
    inverse, estimable = invert(problem.information(weight))
    scale = _scale(problem, mean, estimable)
    return Fits(
        values=values,
        covariances=inverse * scale[:, None, None],
        estimable=estimable,
        finite=finite,
        deviance=problem.deviance(values),
        scale=scale,
    )


def _scale(
    problem: Problem, mean: Float[ndarray, "fits distinct"], estimable: Bool[ndarray, "fits terms"]
) -> Float[ndarray, " fits"]:
    """1 for families without a scale, else Pearson's χ² over its degrees of freedom."""
    if type(problem.family).__name__ in WITHOUT_SCALE:
        return np.ones(len(problem.counts))
    pearson = (problem.counts * (problem.outcome - mean) ** 2 / problem.family.variance(mean)).sum(axis=1)
    dof = problem.rows - estimable.sum(axis=1)
    return np.asarray(pearson / np.maximum(dof, 1))
