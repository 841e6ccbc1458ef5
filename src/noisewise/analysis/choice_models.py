"""Outcomes with more than two levels: multinomial and ordered logit."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.formulas import Design, Prepared, codes_of, prepare
from noisewise.analysis.likelihoods import Curve, Likelihood, fit_each
from noisewise.errors import AnalysisError


@dataclass(frozen=True)
class MultinomialLogit(Estimator):
    """Log odds of each level of the outcome against its first; write `multinomial_logit("party ~ age")`."""

    formula: str
    """Outcome and terms, in formulaic's notation."""

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        ready = prepare(self.formula, datasets)
        outcome, levels = _levels(ready)
        named = [(f"{outcome}={level}: {name}", name) for level in levels[1:] for name in ready.terms]
        return fit_each(
            [term for term, _ in named],
            ready.designs,
            lambda design, counts: _Multinomial(
                matrix=design.matrix, codes=codes_of(design.frame, outcome)[0], counts=counts, levels=len(levels)
            ),
            (f"Log odds against {outcome} = {levels[0]!r}.", *ready.notes),
            {term: ready.variables[name] for term, name in named},
            f"Multinomial logit: {self.formula}",
        )


@dataclass(frozen=True)
class OrderedLogit(Estimator):
    """Proportional odds for an ordered outcome; write `ordered_logit("health ~ age")`.

    logit P(outcome ≤ level) = cut - terms · coefficients, as in R's `polr` and statsmodels' `OrderedModel`:
    a positive coefficient moves the outcome up. The order is that of the schema's levels.
    """

    formula: str
    """Outcome and terms, in formulaic's notation; the cut points take the place of an intercept."""

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        ready = prepare(self.formula, datasets)
        outcome, levels = _levels(ready)
        names = [ready.terms[i] for i in ready.slopes]
        cuts = [f"{low}|{high}" for low, high in itertools.pairwise(levels)]
        return fit_each(
            [*names, *cuts],
            ready.designs,
            lambda design, counts: _ordered(design, ready.slopes, outcome, counts, len(levels)),
            (f"Order of {outcome}: {' < '.join(levels)}.", *ready.notes),
            {name: ready.variables[name] for name in names} | dict.fromkeys(cuts, (outcome,)),
            f"Ordered logit (proportional odds): {self.formula}",
        )


def multinomial_logit(formula: str) -> MultinomialLogit:
    """A multinomial logistic regression: `multinomial_logit("party ~ age + gender")`."""
    return MultinomialLogit(formula)


def ordered_logit(formula: str) -> OrderedLogit:
    """A proportional-odds logistic regression: `ordered_logit("health ~ age + gender")`."""
    return OrderedLogit(formula)


CHOICE_MODELS = {"multinomial-logit": multinomial_logit, "ordered-logit": ordered_logit}
"""Models that are not generalised linear ones, by the names that files and commands use."""


def _levels(ready: Prepared) -> tuple[str, tuple[str, ...]]:
    """The outcome and its levels."""
    outcome = ready.parsed.outcome
    if tuple(map(str, ready.parsed.left)) != outcome:
        raise AnalysisError("The outcome must be one column as it is. Write 'column ~ a + b'.")
    levels = codes_of(ready.designs[0].frame, outcome[0])[1]
    if len(levels) < 2:
        raise AnalysisError(f"The outcome {outcome[0]!r} has one level only: {levels}. There is nothing to model.")
    return outcome[0], levels


@dataclass(frozen=True, kw_only=True, eq=False)
class _Multinomial(Likelihood):
    matrix: Float[ndarray, "distinct terms"]
    codes: Int[ndarray, " distinct"]
    counts: Float[ndarray, " distinct"]
    levels: int

    def start(self) -> Float[ndarray, " parameters"]:
        return np.zeros((self.levels - 1) * self.matrix.shape[1])

    def at(self, parameters: Float[ndarray, " parameters"]) -> Curve:
        linear = np.zeros((len(self.matrix), self.levels))
        linear[:, 1:] = self.matrix @ parameters.reshape(self.levels - 1, -1).T
        linear -= linear.max(axis=1, keepdims=True)
        log_probability = linear - np.log(np.exp(linear).sum(axis=1, keepdims=True))
        probability = np.exp(log_probability)[:, 1:]
        chosen = np.eye(self.levels)[self.codes][:, 1:]
        slope = ((chosen - probability) * self.counts[:, None]).T @ self.matrix
        own = np.eye(self.levels - 1) * probability[:, :, None]
        weight = (own - probability[:, :, None] * probability[:, None, :]) * self.counts[:, None, None]
        information = np.einsum("njk,np,nq->jpkq", weight, self.matrix, self.matrix, optimize=True)
        return Curve(
            value=float(self.counts @ log_probability[np.arange(len(linear)), self.codes]),
            slope=slope.reshape(-1),
            information=information.reshape(len(parameters), -1),
        )


def _ordered(
    design: Design, kept: Sequence[int], outcome: str, counts: Float[ndarray, " distinct"], levels: int
) -> "_Ordered":
    codes = codes_of(design.frame, outcome)[0]
    matrix = design.matrix[:, list(kept)]
    cut = np.eye(levels - 1)
    none = np.zeros((1, levels - 1))
    return _Ordered(
        above=np.hstack([-matrix, np.vstack([cut, none])[codes]]),
        below=np.hstack([-matrix, np.vstack([none, cut])[codes]]),
        last=codes == levels - 1,
        first=codes == 0,
        counts=counts,
        start_cuts=_cuts(codes, counts, levels),
    )


def _cuts(
    codes: Int[ndarray, " distinct"], counts: Float[ndarray, " distinct"], levels: int
) -> Float[ndarray, " cuts"]:
    """Log odds of the shares at or below each level, kept apart where a level is empty."""
    shares = np.bincount(codes, counts + 1e-3, minlength=levels)
    below = np.cumsum(shares / shares.sum())[:-1]
    return np.asarray(np.log(below / (1 - below)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ordered(Likelihood):
    """P(level) = F(above · parameters) - F(below · parameters), with F logistic.

    Above the last level F is 1, below the first it is 0.
    """

    above: Float[ndarray, "distinct parameters"]
    below: Float[ndarray, "distinct parameters"]
    last: ndarray
    first: ndarray
    counts: Float[ndarray, " distinct"]
    start_cuts: Float[ndarray, " cuts"]

    def start(self) -> Float[ndarray, " parameters"]:
        return np.concatenate([np.zeros(self.above.shape[1] - len(self.start_cuts)), self.start_cuts])

    def at(self, parameters: Float[ndarray, " parameters"]) -> Curve:
        from scipy.special import expit

        upper = np.where(self.last, 1.0, expit(self.above @ parameters))
        lower = np.where(self.first, 0.0, expit(self.below @ parameters))
        probability = upper - lower
        possible = bool(
            (probability[self.counts > 0] > 0).all() and (np.diff(parameters[-len(self.start_cuts) :]) > 0).all()
        )
        probability = np.where(probability > 0, probability, 1.0)
        high, low = upper * (1 - upper) / probability, lower * (1 - lower) / probability
        score = high[:, None] * self.above - low[:, None] * self.below
        bend = (high * (1 - 2 * upper) * self.counts)[:, None] * self.above
        information = (score * self.counts[:, None]).T @ score - self.above.T @ bend
        information += self.below.T @ ((low * (1 - 2 * lower) * self.counts)[:, None] * self.below)
        return Curve(
            value=float(self.counts @ np.log(probability)) if possible else -np.inf,
            slope=score.T @ self.counts,
            information=(information + information.T) / 2,
        )
