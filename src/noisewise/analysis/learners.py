"""Estimators in the manner of scikit-learn: anything with `fit(X, y)`, with variances from the bootstrap."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.custom import Reading, collect, resampled
from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.formulas import Design, Prepared, outcome_values, prepare
from noisewise.errors import AnalysisError


@dataclass(frozen=True)
class Learner(Estimator):
    """A model with `fit(X, y)`, fitted to each dataset and to resamples of its rows.

        analyze(datasets, Learner(Ridge(alpha=1.0), "hours ~ age + gender"))

    The matrix X has no column for the intercept: such models add their own. Coefficients of a penalised model are
    shrunk, and so are the intervals' centres; the intervals are for what the penalised fit aims at.
    """

    model: Any
    """An unfitted model; it is copied for every fit and stays as it is."""
    formula: str
    """Outcome and terms, in formulaic's notation."""
    read: Callable[[Any], Any] | None = None
    """From a fitted model to a vector or a pandas Series; by default its `intercept_` and `coef_`."""
    resamples: int = 50
    """Bootstrap resamples per dataset."""
    seed: int = 0
    """Seed of the resampling; dataset i uses the i-th child of it."""
    workers: int = 1
    """How many datasets are worked on at a time, in threads; the model must bear that."""

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        ready = prepare(self.formula, datasets, by_row=True)
        title = f"{type(self.model).__name__}: {self.formula} (bootstrap, {self.resamples} resamples, seed {self.seed})"
        estimates = collect(ready.designs, self._fit_design, title, self.workers)
        known = {term: ready.variables[term] for term in estimates.terms if term in ready.variables}
        return replace(estimates, variables=known, notes=(*_outcome_note(ready), *ready.notes))

    def _fit_design(self, design: Design, number: int) -> Reading:
        kept = [i for i, term in enumerate(design.terms) if term != "Intercept"]
        matrix, names = design.matrix[:, kept], tuple(design.terms[i] for i in kept)

        def estimate(chosen: Any) -> Any:
            picked = slice(None) if chosen is None else chosen
            fitted = copy.deepcopy(self.model).fit(matrix[picked], design.outcome[picked])
            return self.read(fitted) if self.read is not None else coefficients(fitted, names)

        seed = np.random.SeedSequence(self.seed, spawn_key=(number,))
        return resampled(estimate, len(matrix), (), self.resamples, seed)


def _outcome_note(ready: Prepared) -> tuple[str, ...]:
    """How a categorical outcome was given to the model."""
    levels = outcome_values(ready.parsed, ready.designs[0].frame)[1]
    listed = ", ".join(f"{code} = {level!r}" for code, level in enumerate(levels))
    return (f"Outcome as numbers: {listed}.",) if levels else ()


def coefficients(fitted: Any, names: tuple[str, ...]) -> Any:
    """Intercept and coefficients of a fitted linear model, named."""
    import pandas as pd

    if not hasattr(fitted, "coef_"):
        raise AnalysisError(
            f"A fitted {type(fitted).__name__} has no coef_. Say what to read from it: Learner(…, read=function)."
        )
    slopes: Float[ndarray, "outcomes terms"] = np.atleast_2d(np.asarray(fitted.coef_, float))
    if len(slopes) != 1:
        raise AnalysisError(
            f"The model has {len(slopes)} rows of coefficients. Say how to name them: Learner(…, read=lambda model: …)."
        )
    intercept = np.ravel(np.asarray(getattr(fitted, "intercept_", 0.0), float))
    return pd.Series([*intercept[:1], *slopes[0]], index=["Intercept", *names])
