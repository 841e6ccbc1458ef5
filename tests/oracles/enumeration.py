"""The maximum-entropy distribution by listing every possible row: slow, obvious, and right.

Nothing here knows of trees or messages. The design matrix has one line per possible row and one column per
parameter, an indicator of "these columns have these levels"; everything follows from it by definition.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np


@dataclass(frozen=True)
class Enumeration:
    """The model over all rows of a small domain."""

    sizes: tuple[int, ...]
    marginals: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> list[tuple[int, ...]]:
        return list(product(*(range(size) for size in self.sizes)))

    @property
    def parameters(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """(columns, levels) of every parameter: no level is the first; fewer columns first, levels row by row."""
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
        features = self.parameters
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
