"""The maximum-entropy distribution by listing every possible row: slow, obvious, and right.

Nothing here knows of trees or messages. The design matrix has one line per possible row (combinations that cannot
occur are struck off the list) and one column per parameter, an indicator of "these columns have these levels";
everything follows from it by definition.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np


@dataclass(frozen=True)
class Enumeration:
    """The model over all rows of a small domain."""

    sizes: tuple[int, ...]
    marginals: tuple[tuple[int, ...], ...]
    impossible: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = ()

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """All rows that no box of `impossible` holds."""
        rows = product(*(range(size) for size in self.sizes))
        return [row for row in rows if not any(all(row[c] in ks for c, ks in box) for box in self.impossible)]

    @property
    def parameters(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Those of `interactions` that are no combination of a constant and of those before them."""
        kept, design = [], np.ones((len(self.rows), 1))
        for feature in self.interactions:
            wider = np.column_stack([design, self._holds([feature])])
            if np.linalg.matrix_rank(wider) > design.shape[1]:
                kept, design = [*kept, feature], wider
        return kept

    @property
    def interactions(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """(columns, levels) of every interaction: no level is the first; fewer columns first, levels row by row."""
        subsets = {
            tuple(sorted(subset))
            for marginal in self.marginals
            for k in range(1, len(marginal) + 1)
            for subset in combinations(marginal, k)
        }
        return [
            (columns, levels)
            for columns in sorted(subsets, key=lambda a: (len(a), a))
            for levels in product(*(range(1, self.sizes[c]) for c in columns))
        ]

    @property
    def design(self) -> np.ndarray:
        return self._holds(self.parameters if self.impossible else self.interactions)

    def _holds(self, features) -> np.ndarray:
        holds = [[all(row[c] == v for c, v in zip(*f, strict=True)) for f in features] for row in self.rows]
        return np.array(holds, float).reshape(len(self.rows), len(features))

    @property
    def cells(self) -> np.ndarray:
        """Which rows fall into which measured cell, marginal after marginal, in the marginal's own column order."""
        found = []
        for marginal in self.marginals:
            for levels in product(*(range(self.sizes[c]) for c in marginal)):
                found.append([tuple(row[c] for c in marginal) == levels for row in self.rows])
        return np.array(found, float).reshape(-1, len(self.rows))

    def log_partition(self, theta) -> float:
        energy = self.design @ theta
        return float(np.log(np.exp(energy - energy.max()).sum()) + energy.max())

    def probabilities(self, theta) -> np.ndarray:
        """Of every row of the domain."""
        return np.exp(self.design @ theta - self.log_partition(theta))

    def cell_probabilities(self, theta) -> np.ndarray:
        """μ(θ)."""
        return self.cells @ self.probabilities(theta)

    def covariance(self, theta) -> np.ndarray:
        """Σ(θ): E[ccᵀ] - E[c]E[c]ᵀ over the indicators c of the cells."""
        p, mean = self.probabilities(theta), self.cell_probabilities(theta)
        return (self.cells * p) @ self.cells.T - np.outer(mean, mean)
