"""Generalized linear models by formula, on distinct rows, for all datasets together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, Estimator, counted
from noisewise.analysis.families import describe, family_of
from noisewise.analysis.formulas import Design, Parsed, Prepared, outcome_values, prepare, with_outcome
from noisewise.analysis.irls import Fits, Problem, fit_many
from noisewise.analysis.parallel import each
from noisewise.analysis.remedies import DropHugeVariances, Remedy, RidgeBootstrap
from noisewise.errors import AnalysisError

EMPTY = "a coefficient is not determined by the dataset (an empty level or a collinear column)"
INFINITE = (
    "a coefficient has no finite estimate, because an outcome does not occur for some level (separation) or the fit "
    "did not converge"
)


@dataclass(frozen=True)
class Glm(Estimator):
    """A generalized linear model; write `glm("income ~ age + race", family="binomial")`.

    Estimates and covariances equal those of `statsmodels` on the full rows: maximum likelihood, inverse
    Fisher information, and for families with a scale Pearson's χ² over its degrees of freedom. Categories
    have the schema's levels, the first being the reference; a categorical outcome needs exactly two levels
    and the second is modelled.
    """

    formula: str
    """Outcome and terms, in formulaic's notation."""
    family: Any = "gaussian"
    """A name ("binomial", "gaussian", "poisson", …) or a statsmodels family with its link."""
    remedy: Remedy | None = None
    """What to do about empty cells; by default undetermined estimates are left out and counted."""
    weights: str | None = None
    """A column of prior weights, with the meaning of R's `glm(weights=)` and statsmodels' `var_weights`."""

    @property
    def rests_on(self) -> str:
        return with_outcome(self.weights, self.formula)

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        family = family_of(self.family)
        ready = prepare(self.formula, datasets, weights=self.weights)
        outcome = _check_outcome(ready, family)
        _check_rows(ready.designs)
        parts = [self._fit_design(design, family, first) for first, design in _numbered(ready.designs)]
        estimates = _joined(ready.terms, parts)
        return replace(
            estimates,
            notes=(*outcome, *ready.notes, *estimates.notes),
            variables=ready.variables,
            title=f"Generalized linear model: {self.formula} ({describe(family)})",
        )

    def _fit_design(self, design: Design, family: Any, first: int) -> Estimates:
        if isinstance(self.remedy, RidgeBootstrap):
            return _bootstrapped(design, family, self.remedy, first)
        fits = fit_many(problem_of(design, family))
        estimates = _estimates(design.terms, fits)
        if isinstance(self.remedy, DropHugeVariances):
            return _without_huge(estimates, fits, self.remedy.threshold)
        return estimates


def glm(formula: str, family: Any = "gaussian", remedy: Remedy | None = None, weights: str | None = None) -> Glm:
    """A generalized linear model: `glm("income ~ age + race + gender", family="binomial")`."""
    return Glm(formula, family, remedy, weights)


def logit(formula: str, remedy: Remedy | None = None, weights: str | None = None) -> Glm:
    """Logistic regression."""
    return Glm(formula, "binomial", remedy, weights)


def poisson(formula: str, remedy: Remedy | None = None, weights: str | None = None) -> Glm:
    """Poisson regression with a log link."""
    return Glm(formula, "poisson", remedy, weights)


def ols(formula: str, remedy: Remedy | None = None, weights: str | None = None) -> Glm:
    """Least squares: a Gaussian model with the usual unbiased residual variance."""
    return Glm(formula, "gaussian", remedy, weights)


def _check_outcome(ready: Prepared, family: Any) -> tuple[str, ...]:
    """Refuse an outcome that the family cannot have; say which level is modelled."""
    levels = outcome_values(ready.parsed, ready.designs[0].frame)[1]
    values = np.concatenate([design.outcome for design in ready.designs])
    name, outcome = type(family).__name__, " + ".join(map(str, ready.parsed.left or ()))
    if levels and (name != "Binomial" or len(levels) != 2):
        raise AnalysisError(
            f"The outcome {outcome!r} has {len(levels)} levels ({', '.join(levels)}); the {name} family needs "
            f"{'two' if name == 'Binomial' else 'a number'}. Compare one level with the rest, as in "
            f"I({outcome} == {levels[-1]!r}), or use multinomial_logit() or ordered_logit()."
        )
    if name == "Binomial" and not levels and (values.min() < 0 or values.max() > 1):
        raise AnalysisError(
            f"The outcome {outcome!r} has values from {values.min():g} to {values.max():g}; the Binomial family "
            f"needs 0 and 1 (or two levels). Write a comparison, such as I({outcome} > {np.median(values):g})."
        )
    if name in ("Poisson", "NegativeBinomial", "Tweedie") and values.min() < 0:
        raise AnalysisError(
            f"The outcome {outcome!r} has negative values; the {name} family needs counts. Use gaussian."
        )
    if name in ("Gamma", "InverseGaussian") and values.min() <= 0:
        raise AnalysisError(f"The outcome {outcome!r} has values of 0 or less; the {name} family needs positive ones.")
    return (f"Outcome: {outcome} = {levels[1]!r}, against {levels[0]!r}.",) if levels else ()


def _check_rows(made: list[Design]) -> None:
    totals = [count for design in made for count in design.counts.sum(axis=1)]
    terms = len(made[0].terms)
    if min(totals) <= terms:
        raise AnalysisError(
            f"Dataset {int(np.argmin(totals))} has {min(totals):.0f} complete rows for {terms} terms. Use fewer terms."
        )


def _numbered(made: list[Design]) -> list[tuple[int, Design]]:
    """Each design with the number of its first dataset."""
    starts = np.cumsum([0, *(len(design.counts) for design in made)])
    return [(int(start), design) for start, design in zip(starts[:-1], made, strict=True)]


def problem_of(design: Design, family: Any) -> Problem:
    """All datasets of a design as one problem."""
    return Problem(
        matrix=design.matrix,
        outcome=design.outcome,
        counts=design.counts * design.weights,
        rows=design.counts @ (design.weights > 0),
        family=family,
    )


def with_weights(parsed: Parsed, weights: str | None) -> tuple[str, ...]:
    """The columns a weighted model reads."""
    return parsed.columns if weights is None or weights in parsed.columns else (*parsed.columns, weights)


def _estimates(terms: tuple[str, ...], fits: Fits) -> Estimates:
    left_out = counted({EMPTY: ~fits.estimable, INFINITE: fits.estimable & ~fits.finite})
    return Estimates(
        terms=terms,
        values=fits.values,
        covariances=fits.covariances,
        used=fits.estimable & fits.finite,
        left_out=left_out,
    )


def _without_huge(estimates: Estimates, fits: Fits, threshold: float) -> Estimates:
    huge = fits.estimable & ((estimates.variances >= threshold) | ~fits.finite)
    reason = f"an estimate's variance is {threshold:g} or more"
    return replace(
        estimates,
        used=fits.estimable & ~huge,
        left_out=counted({EMPTY: ~fits.estimable, reason: huge}),
        notes=(f"Remedy for empty cells: estimates with a variance of {threshold:g} or more are left out.",),
    )


def _bootstrapped(design: Design, family: Any, remedy: RidgeBootstrap, first: int) -> Estimates:
    fitted = each(
        lambda number: _bootstrap_one(design, family, remedy, design.counts[number], first + number), len(design.counts)
    )
    empty = np.array([~np.abs(design.matrix[counts > 0]).any(axis=0) for counts in design.counts])
    values = np.stack([fits.mean(axis=0) for fits in fitted])
    notes = [
        f"Remedy for empty cells: ridge of {remedy.penalty:g} per row, variances from {remedy.resamples} bootstrap "
        f"resamples (seed {remedy.seed})."
    ]
    notes += [
        f"{term}: no rows in {count} of {len(values)} datasets; the ridge gives 0 there, which pulls the estimate to 0."
        for term, count in zip(design.terms, empty.sum(axis=0), strict=True)
        if count
    ]
    return Estimates(
        terms=design.terms,
        values=values,
        covariances=np.stack([np.cov(fits, rowvar=False).reshape(fits.shape[1], -1) for fits in fitted]),
        used=np.ones(values.shape, bool),
        notes=tuple(notes),
    )


def _bootstrap_one(
    design: Design, family: Any, remedy: RidgeBootstrap, counts: Float[ndarray, " distinct"], number: int
) -> Float[ndarray, "resamples terms"]:
    """Coefficients on each resample of one dataset; the resampling depends on the seed and its number only."""
    generator = np.random.default_rng(np.random.SeedSequence(remedy.seed, spawn_key=(number,)))
    present = np.flatnonzero(counts)
    size = int(counts.sum())
    resampled = generator.multinomial(size, counts[present] / size, size=remedy.resamples).astype(float)
    problem = Problem(
        matrix=design.matrix[present],
        outcome=design.outcome[present],
        counts=resampled * design.weights[present],
        rows=resampled.sum(axis=1),
        family=family,
        ridge=remedy.penalty,
    )
    return fit_many(problem).values


def _joined(terms: tuple[str, ...], parts: list[Estimates]) -> Estimates:
    if len(parts) == 1:
        return parts[0]
    left_out: dict[str, int] = {}
    for part in parts:
        for reason, count in part.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + count
    return Estimates(
        terms=terms,
        values=np.concatenate([part.values for part in parts]),
        covariances=np.concatenate([part.covariances for part in parts]),
        used=np.concatenate([part.used for part in parts]),
        left_out=left_out,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
