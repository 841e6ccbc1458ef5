"""Quantiles of a number that a release holds in bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.descriptive import Descriptive, Influence, number_of
from noisewise.analysis.estimates import Estimates
from noisewise.errors import AnalysisError
from noisewise.schema import Numeric

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Quantiles(Descriptive):
    """Quantiles, interpolated within bins; write `quantiles("age", 0.25, 0.5, 0.75)`.

    A release holds one representative value per bin. The quantile is that of a distribution that is even within
    each bin, and its variance is p (1 - p) / (rows · density²). Rubin's rules assume estimates that are nearly
    normal, which a quantile is only where the density around it is smooth: the result says so.
    """

    column: str
    """The number."""
    probabilities: tuple[float, ...]
    """Which quantiles, between 0 and 1."""
    edges: tuple[float, ...] = ()
    """Edges of the bins, each of which holds one value; by default those of the release's schema."""

    @property
    def formula(self) -> str:  # type: ignore[override]  # an attribute of the base, computed here
        return f"`{self.column}`"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def title(self) -> str:
        return f"Quantiles of {self.column}"

    empty = "the quantile's bin has no rows or no end"

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        return (
            "Warning: pooling assumes nearly normal estimates with smooth variances; quantiles of binned data "
            "are so only roughly, and values are taken to be even within a bin.",
        )

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        for probability in self.probabilities or (0.0,):
            if not 0 < probability < 1:
                raise AnalysisError(f"The quantile {probability} is not between 0 and 1. Write quantiles('age', 0.5).")
        schema = getattr(datasets, "schema", None)
        if self.edges or schema is None:
            return super().fit(datasets)
        column = schema.column(self.column)
        if not isinstance(column, Numeric):
            raise AnalysisError(f"Column {self.column!r} is not a number. Use proportions({self.column!r}).")
        return Quantiles(self.column, self.probabilities, column.edges).fit(datasets)

    def terms(self, frame: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
        return {f"{self.column} q{probability:g}": self.columns for probability in self.probabilities}

    def measure(self, frame: "pd.DataFrame", counts: Float[ndarray, " distinct"]) -> Influence:
        values, edges = number_of(frame, self.column), np.asarray(self._edges())
        bins = np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
        share = np.bincount(bins, counts, minlength=len(edges) - 1) / counts.sum()
        found = [_quantile(p, share, edges, bins) for p in self.probabilities]
        return Influence(
            values=np.array([value for value, _ in found]), rows=np.stack([influence for _, influence in found], axis=1)
        )

    def _edges(self) -> tuple[float, ...]:
        if len(self.edges) < 2 or any(low >= high for low, high in zip(self.edges, self.edges[1:], strict=False)):
            raise AnalysisError(
                f"Quantiles of {self.column!r} need the edges of its bins, increasing. Use a release, or give edges=."
            )
        return self.edges


def quantiles(column: str, *probabilities: float, edges: Sequence[float] = ()) -> Quantiles:
    """Quantiles of a number: `quantiles("age", 0.5)` is the median."""
    return Quantiles(column, probabilities, tuple(edges))


def _quantile(
    probability: float, share: Float[ndarray, " bins"], edges: Float[ndarray, " edges"], bins: ndarray
) -> tuple[float, ndarray]:
    """The quantile and its influence values; NaN where its bin has no end."""
    below = np.concatenate([[0.0], np.cumsum(share)])
    at = min(int(np.searchsorted(below, probability, side="left")) - 1, len(share) - 1)
    width = edges[at + 1] - edges[at]
    if not np.isfinite(width):
        return np.nan, np.full(bins.shape, np.nan)
    inside = (probability - below[at]) / share[at]
    not_above = np.where(bins < at, 1.0, np.where(bins == at, inside, 0.0))
    return float(edges[at] + inside * width), -(not_above - probability) * width / share[at]
