"""Proportional hazards, where a column of times and a column of events are in the release."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.formulas import Design, codes_of, outcome_values, prepare, with_outcome
from noisewise.analysis.likelihoods import Curve, Likelihood, fit_each
from noisewise.errors import AnalysisError


@dataclass(frozen=True)
class Cox(Estimator):
    """Cox's proportional hazards with Breslow's treatment of ties; write `cox("time ~ age", event="died")`.

    Times in a release are bins, so that ties are many; with coarse bins a logistic regression for each bin may
    be the better model. Without `event` every time is that of an event.
    """

    formula: str
    """Time and terms, in formulaic's notation; there is no intercept."""
    event: str | None = None
    """A column with two levels, the second (or 1, or true) meaning that the event happened."""

    @property
    def rests_on(self) -> str:
        return with_outcome(self.event, self.formula)

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        ready = prepare(self.formula, datasets, besides=self.event)
        levels = outcome_values(ready.parsed, ready.designs[0].frame)[1]
        if levels:
            time = ready.parsed.outcome[0]
            raise AnalysisError(f"The time {time!r} is a category ({', '.join(levels)}). Give a number.")
        names = [ready.terms[i] for i in ready.slopes]
        return fit_each(
            names,
            ready.designs,
            lambda design, counts: _breslow(design, ready.slopes, self._happened(design), counts),
            ("Ties by Breslow's approximation.", *ready.notes),
            {name: ready.variables[name] for name in names},
            f"Cox proportional hazards: {self.formula}" + (f" (event: {self.event})" if self.event else ""),
        )

    def _happened(self, design: Design) -> Float[ndarray, " distinct"]:
        if self.event is None:
            return np.ones(len(design.matrix))
        codes, levels = codes_of(design.frame, self.event)
        if len(levels) != 2:
            raise AnalysisError(
                f"The event column {self.event!r} has {len(levels)} levels ({', '.join(levels)}); it needs two."
            )
        return codes.astype(float)


def cox(formula: str, event: str | None = None) -> Cox:
    """A Cox regression: `cox("duration ~ age + treatment", event="died")`."""
    return Cox(formula, event)


def _breslow(
    design: Design, kept: Sequence[int], happened: Float[ndarray, " distinct"], counts: Float[ndarray, " distinct"]
) -> "_Breslow":
    order = np.argsort(-design.outcome, kind="stable")
    times = design.outcome[order]
    return _Breslow(
        matrix=design.matrix[order][:, list(kept)],
        counts=counts[order],
        events=(counts * happened)[order],
        ends=np.flatnonzero(np.append(times[1:] != times[:-1], True)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Breslow(Likelihood):
    """Rows from the longest time to the shortest, so that sums over those at risk are cumulative sums."""

    matrix: Float[ndarray, "distinct terms"]
    counts: Float[ndarray, " distinct"]
    events: Float[ndarray, " distinct"]
    ends: Int[ndarray, " times"]

    def start(self) -> Float[ndarray, " terms"]:
        return np.zeros(self.matrix.shape[1])

    def at(self, parameters: Float[ndarray, " terms"]) -> Curve:
        linear = self.matrix @ parameters
        top = linear.max()
        risk = self.counts * np.exp(linear - top)
        events = np.diff(np.cumsum(self.events)[self.ends], prepend=0.0)
        weighted = risk[:, None] * self.matrix
        at_time = [slice(a, b) for a, b in itertools.pairwise([0, *(self.ends + 1)])]
        squares = np.cumsum([weighted[rows].T @ self.matrix[rows] for rows in at_time], axis=0)
        with_events = events > 0
        events, ends = events[with_events], self.ends[with_events]
        total = np.cumsum(risk)[ends]
        mean = np.cumsum(weighted, axis=0)[ends] / total[:, None]
        second = squares[with_events] / total[:, None, None]
        return Curve(
            value=float(self.events @ linear - events @ (np.log(total) + top)),
            slope=self.events @ self.matrix - events @ mean,
            information=np.tensordot(events, second - mean[:, :, None] * mean[:, None, :], axes=1),
        )
