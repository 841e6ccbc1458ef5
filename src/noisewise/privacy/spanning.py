"""`Mst`: a tree of two-way marginals that explain most of what one-way counts leave unexplained, chosen privately.

The method of McKenna, Miklau and Sheldon 2021 ("Winning the NIST contest"), with three differences: its sensitivity is
for substitution; its noisy one-way counts are used afterwards and not thrown away; and marginals that are required come
first, with the tree growing around them.
"""

from dataclasses import dataclass

from noisewise.errors import ModelError
from noisewise.noisy_counts import Measurement
from noisewise.privacy.forest import Forest
from noisewise.privacy.selection import Chances, Chosen, Selection, distance, expected_if_independent
from noisewise.schema import Schema
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True)
class Mst(Selection):
    """Choose two-way marginals that tie all columns together in a tree, privately: give it to `measure` as `select`.

    Each choice takes, by the exponential mechanism, a pair of columns that are not tied together yet, preferring pairs
    whose counts lie far from what independence would give. Use it where it is not known which columns go together.

        measure(data, schema, workload, Budget(epsilon=1.0), select=Mst(share=0.1))
    """

    @property
    def name(self) -> str:
        """The name that files and manifests use."""
        return "mst"

    def choices(self, schema: Schema, required: tuple[Marginal, ...]) -> int:
        """As many as it takes to tie together what required marginals leave apart."""
        forest = Forest.of(schema, self.over(schema), required, self.max_cells)
        if forest.cheapest > self.max_cells:
            raise ModelError(
                f"Even the smallest tree over these columns makes a model of {forest.cheapest:,} cells, more than "
                f"max_cells = {self.max_cells:,}. Declare fewer levels, name fewer columns, or raise max_cells. "
                "Nothing was measured."
            )
        return forest.choices

    def candidates(self, schema: Schema, required: tuple[Marginal, ...]) -> tuple[Marginal, ...]:
        """Pairs that can be part of a tree within the limit."""
        return tuple(Forest.of(schema, self.over(schema), required, self.max_cells).admissible())

    def choose(self, schema: Schema, required: tuple[Measurement, ...], chances: Chances) -> Chosen:
        """Measure one-way counts, grow the tree pair by pair, and measure its pairs."""
        one_way = self.one_way(schema)
        kept = {m: chances.measured(m, s) for m, s in zip(one_way, chances.first.stddevs, strict=True)}

        def unexplained(pair: Marginal) -> int:
            return distance(chances.tables[pair], expected_if_independent(kept, pair, chances.rows))

        forest = Forest.of(schema, self.over(schema), tuple(m.marginal for m in required), self.max_cells)
        scores = {pair: unexplained(pair) for pair in forest.admissible()}
        tree: list[Marginal] = []
        for number in range(len(chances.measuring)):
            pair = chances.chosen(list(forest.admissible()), scores.__getitem__, number)
            forest = forest.joined(pair)
            tree.append(pair)
        ordered = sorted(tree, key=lambda pair: [schema.index(name) for name in pair])
        measured = tuple(chances.measured(m, s) for m, s in zip(ordered, chances.measuring, strict=True))
        return Chosen(kept=tuple(kept.values()), marginals=measured)
