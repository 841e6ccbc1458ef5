"""`Adaptive`: rounds of choosing, measuring and estimating, in one budget.

In the spirit of McKenna, Mullins, Sheldon and Miklau 2022 ("AIM"), with a number of rounds and a noise that are settled
in advance, so that what it costs is known before anything is drawn. In each round a quick estimate is made from what
has been measured; the exponential mechanism picks a pair whose exact counts lie far from it, less the error that noise
would make anyway; and the pair is measured. A pair that makes the model too large is not offered. One that has been
measured may be picked again: then there is nothing better to do.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from noisewise.errors import BudgetError, ModelError
from noisewise.model.estimate import PointEstimate, Seen
from noisewise.model.junction_tree import junction_tree
from noisewise.model.masks import columns_of
from noisewise.noisy_counts import Measurement
from noisewise.privacy.selection import Chances, Chosen, Selection, distance
from noisewise.schema import Schema
from noisewise.workload import Marginal

LEAST_DRAWN, MOST_DRAWN = 100_000, 1_000_000
"""Rows drawn from an estimate to learn what it expects of pairs that lie in no clique."""


@dataclass(frozen=True, kw_only=True)
class Adaptive(Selection):
    """Choose pairs one at a time, each in view of all that was measured before: give it to `measure` as `select`.

    Use it where columns go together in rings rather than in a tree, and time is not short: each round fits a model.

        measure(data, schema, workload, Budget(epsilon=1.0), select=Adaptive(share=0.1, rounds=8))
    """

    rounds: int | None = None
    """How many pairs to measure; by default as many as there are columns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounds is not None and self.rounds < 1:
            raise BudgetError(
                f"rounds is {self.rounds}; a selection makes at least one choice. Leave it out, or raise it."
            )

    @property
    def name(self) -> str:
        """The name that files and manifests use."""
        return "adaptive"

    def choices(self, schema: Schema, required: tuple[Marginal, ...]) -> int:
        """As many as there are rounds."""
        cells = _cells(schema, required)
        if cells > self.max_cells:
            raise ModelError(
                f"The required marginals alone make a model of {cells:,} cells, more than max_cells = "
                f"{self.max_cells:,}. Leave one out, or raise max_cells. Nothing was measured."
            )
        return len(self.over(schema)) if self.rounds is None else self.rounds

    def candidates(self, schema: Schema, required: tuple[Marginal, ...]) -> tuple[Marginal, ...]:
        """One-way marginals, which always fit, and the pairs that do."""
        offered = [*self.one_way(schema), *combinations(self.over(schema), 2)]
        return tuple(m for m in offered if len(m) == 1 or _cells(schema, (*required, m)) <= self.max_cells)

    def choose(self, schema: Schema, required: tuple[Measurement, ...], chances: Chances) -> Chosen:
        """Measure one-way counts; then choose, measure and estimate, round by round."""
        one_way = self.one_way(schema)
        kept = tuple(chances.measured(m, s) for m, s in zip(one_way, chances.first.stddevs, strict=True))
        offered = self.candidates(schema, tuple(m.marginal for m in required))
        found: list[Measurement] = []
        for number, stddev in enumerate(chances.measuring):
            known = (*kept, *required, *found)
            tied = tuple(m.marginal for m in known)
            expected = _expected(chances.schema, known, chances.rows)

            def error(marginal: Marginal, expected: "_Expected" = expected, stddev: float = stddev) -> int:
                table = expected.counts(marginal)
                noise = math.sqrt(2 / math.pi) * stddev * table.size  # the L1 error that measuring it would leave
                return distance(chances.tables[marginal], table) - round(noise)

            fitting = [m for m in offered if m in tied or _cells(schema, (*tied, m)) <= self.max_cells]
            found.append(chances.measured(chances.chosen(fitting, error, number), stddev))
        return Chosen(kept=kept, marginals=tuple(found))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Expected:
    schema: Schema
    rows: int
    drawn: np.ndarray

    def counts(self, marginal: Marginal) -> np.ndarray:
        """Whole-number counts that the estimate expects: from noisy counts alone."""
        shape = self.schema.shape(marginal)
        columns = tuple(self.drawn[:, self.schema.index(name)].astype(np.int64) for name in marginal)
        counts = np.bincount(np.ravel_multi_index(columns, shape), minlength=math.prod(shape))
        return np.rint(counts * (self.rows / len(self.drawn))).astype(np.int64).reshape(shape)


def _expected(schema: Schema, known: tuple[Measurement, ...], rows: int) -> _Expected:
    seen = [
        Seen(columns=tuple(map(schema.index, m.marginal)), counts=m.values.astype(float), stddev=m.stddev)
        for m in known
    ]
    estimate = PointEstimate.of(schema.sizes, seen, rows, schema.impossible)
    drawn = estimate.draw(min(MOST_DRAWN, max(LEAST_DRAWN, 10 * rows)), seed=0)
    return _Expected(schema=schema, rows=rows, drawn=drawn)


def _cells(schema: Schema, marginals: tuple[Marginal, ...]) -> int:
    """Cells of the model of some marginals, and of the schema's rules."""
    positions = [tuple(map(schema.index, marginal)) for marginal in marginals]
    return junction_tree(schema.sizes, [*positions, *map(columns_of, schema.impossible)]).cells
