"""Columns of numbers whose bin edges are quantiles that `measure` buys with a part of the budget."""

import math
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from noisewise.schema.numeric import Numbers, Numeric, refuse_unsorted

MAX_GRID_CELLS = 10_000


class EvenGrid(BaseModel):
    """A grid of equal steps: { from = 0, to = 100, step = 5 }."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    low: float = Field(alias="from")
    """The first point."""
    high: float = Field(alias="to")
    """The last point."""
    step: float = Field(gt=0)
    """The distance of neighbouring points."""

    @property
    def points(self) -> tuple[float, ...]:
        """All points, the last one included even if the last step is shorter."""
        steps = math.ceil((self.high - self.low) / self.step - 1e-9)
        return (*(self.low + i * self.step for i in range(steps)), self.high)


class QuantileNumeric(Numbers):
    """A number whose bins are to hold about equally many rows; the edges are chosen from a public grid.

    The grid is public knowledge, written by hand. `measure` counts the rows between its points with noise, which costs
    a part of the budget (`share`), and picks the edges from the noisy counts. From then on the column is an ordinary
    `Numeric`.
    """

    type: Literal["numeric"] = "numeric"
    """The kind of column."""
    edges: Literal["quantiles"]
    """Says that the edges are to be bought."""
    bins: StrictInt = Field(ge=2)
    """Number of bins wanted. Where many rows share a value there may be fewer."""
    grid: tuple[float, ...] | EvenGrid
    """The values an edge may take, the outermost included: a list, or { from = 0, to = 100, step = 5 }."""

    share: float = Field(default=0.05, gt=0, lt=1)
    """The part of the whole budget that the edges of this column cost."""

    @model_validator(mode="after")
    def _check(self) -> "QuantileNumeric":
        if isinstance(self.grid, EvenGrid) and not self.grid.low < self.grid.high:
            raise ValueError("the grid ends before it begins. Give a larger `to`.")
        if isinstance(self.grid, EvenGrid) and (self.grid.high - self.grid.low) / self.grid.step > MAX_GRID_CELLS:
            raise ValueError(f"the grid has more than {MAX_GRID_CELLS:,} steps. Give a larger `step`.")
        refuse_unsorted(self.points)
        if not self.bins < len(self.points) <= MAX_GRID_CELLS + 1 or not all(map(math.isfinite, self.points)):
            raise ValueError(
                f"the grid has {len(self.points)} points for {self.bins} bins. Give more points than bins, all finite, "
                f"and at most {MAX_GRID_CELLS + 1:,}."
            )
        if self.integer and not all(point.is_integer() for point in self.points):
            raise ValueError("integer = true needs a grid of whole numbers. Correct `grid`.")
        return self

    @property
    def points(self) -> tuple[float, ...]:
        """The points of the grid."""
        return self.grid.points if isinstance(self.grid, EvenGrid) else self.grid

    @property
    def declared_labels(self) -> tuple[str, ...]:
        return tuple(f"bin {number + 1}" for number in range(self.bins)) + self.codes

    def declared_values(self) -> pa.Array:
        raise ValueError(f"The edges of {self.name!r} are bought by `measure`: before it nothing can be decoded.")

    @property
    def on_grid(self) -> Numeric:
        """The column with all of the grid's points as edges: what is counted to find the quantiles."""
        return self._with(self.points, integer=False, released_as="representative")

    def with_edges(self, edges: tuple[float, ...]) -> Numeric:
        """The column once its edges are known."""
        return self._with(edges)

    def _with(self, edges: tuple[float, ...], **changed: object) -> Numeric:
        own = {key: value for key, value in self if key not in ("edges", "bins", "grid", "share")}
        return Numeric(**{**own, "edges": edges, **changed})

    def levels_from_grid(self, edges: tuple[float, ...]) -> np.ndarray:
        """For each level of `on_grid` the level that it becomes once the edges are known."""
        bins = np.searchsorted(np.array(edges[1:-1]), np.array(self.points[:-1]), side="right")
        others = np.arange(self.on_grid.size - len(bins)) + len(edges) - 1
        return np.concatenate([bins, others])

    def edges_from(self, noisy: np.ndarray) -> tuple[float, ...]:
        """Edges between which the noisy counts of the grid's cells come nearest to equal shares.

        The distribution function is the running sum of the noisy counts, made monotone by the mean of the
        smallest monotone function above and the largest below. A pure function of noisy counts: post-processing.
        """
        sums = np.concatenate([[0.0], np.cumsum(noisy[: len(self.points) - 1])])
        above, below = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
        monotone = (above + below) / 2
        total = monotone[-1] - monotone[0]
        if total <= 0:  # the noise has drowned the counts: even steps are as good as any
            monotone, total = np.arange(len(sums), dtype=float), float(len(sums) - 1)
        wanted = monotone[0] + total * np.arange(1, self.bins) / self.bins
        nearest = np.abs(monotone[1:-1, None] - wanted).argmin(0) + 1
        inner = sorted({int(point) for point in nearest})
        return (self.points[0], *(self.points[i] for i in inner), self.points[-1])
