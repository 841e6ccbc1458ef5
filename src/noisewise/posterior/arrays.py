"""A problem on its layout: noisy counts per cell of the cliques, coordinates, and everything else a target needs.

Plain NumPy and SciPy; `target.py` turns it into JAX arrays.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from noisewise.posterior.layout import Layout, Matrix
from noisewise.posterior.problem import Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrays:
    """A problem as flat vectors over the cells of its layout."""

    problem: Problem
    """The problem."""
    layout: Layout
    """Its layout."""

    @classmethod
    def of(cls, problem: Problem) -> "Arrays":
        """Lay a problem out."""
        return cls(problem=problem, layout=Layout.of(problem.model))

    # What was observed. Counts of a whole clique are weighted together cell by cell; other marginals are parts.

    @cached_property
    def _whole(self) -> list[tuple[slice, int, bool]]:
        """Per marginal: its measured cells, its home, and whether it is the whole clique."""
        found, start = [], 0
        for marginal in self.problem.model.marginals:
            home = self.layout.home(marginal)
            stop = start + int(np.prod(self.problem.model.tree.shape(marginal)))
            found.append((slice(start, stop), home, len(marginal) == len(self.layout.cliques[home].columns)))
            start = stop
        return found

    @cached_property
    def _precision(self) -> np.ndarray:
        return np.where(self.problem.observed, 1 / self.problem.noise_variance, 0.0)

    @cached_property
    def weight(self) -> np.ndarray:
        """Precision of the measured count of every clique cell; zero where the clique was not measured as a whole."""
        return self._combined(self._precision)

    @cached_property
    def count(self) -> np.ndarray:
        """The measured count of every clique cell, zero where there is none."""
        total = self._combined(self._precision * self.problem.noisy)
        return total / np.where(self.weight > 0, self.weight, 1)

    def _combined(self, values: np.ndarray) -> np.ndarray:
        kept = values.copy()
        for cells, _, whole in self._whole:
            if not whole:
                kept[cells] = 0
        return self.layout.measured_sums.T @ kept

    @cached_property
    def parts(self) -> np.ndarray:
        """The measured cells of marginals smaller than their clique."""
        kept = [np.arange(cells.start, cells.stop) for cells, _, whole in self._whole if not whole]
        return np.concatenate(kept) if kept else np.zeros(0, np.intp)

    @cached_property
    def part_sums(self) -> Matrix:
        """Those cells by clique cells."""
        return self.layout.measured_sums[self.parts]

    @cached_property
    def part_weight(self) -> np.ndarray:
        """Precision of each of them."""
        return self._precision[self.parts]

    @cached_property
    def part_count(self) -> np.ndarray:
        """Their noisy counts."""
        return self.problem.noisy[self.parts]

    # Coordinates

    @cached_property
    def reference(self) -> np.ndarray:
        """The cell of every row against which the log odds are taken: the largest count, where there is a choice."""
        layout, chosen = self.layout, self.layout.first.copy()
        for clique, saturated in zip(layout.cliques, layout.saturated, strict=True):
            if saturated:
                counts = self.count[clique.cells].reshape(clique.rows.stop - clique.rows.start, -1)
                chosen[clique.rows] = layout.first[clique.rows] + counts.argmax(1)
        return chosen

    @cached_property
    def free(self) -> np.ndarray:
        """The cell of every coordinate: the log odds of this cell against its row's reference."""
        cells = [
            np.setdiff1d(np.arange(self.layout.cells)[clique.cells], self.reference[clique.rows])
            if saturated
            else np.concatenate([self.layout.feature_cells[b.start : b.stop] for b in clique.blocks])
            for clique, saturated in zip(self.layout.cliques, self.layout.saturated, strict=True)
            if clique.blocks
        ]
        return np.concatenate(cells)

    @cached_property
    def _unsaturated(self) -> tuple[np.ndarray, np.ndarray]:
        """Cells and parameters of the cliques that are not saturated."""
        cells = np.zeros(self.layout.cells, bool)
        parameters = np.zeros(self.problem.model.parameters, bool)
        for clique, saturated in zip(self.layout.cliques, self.layout.saturated, strict=True):
            if not saturated:
                cells[clique.cells] = True
                for block in clique.blocks:
                    parameters[block.start : block.stop] = True
        return cells, parameters

    @cached_property
    def _completion(self) -> Matrix:
        """Cells by parameters: a table of log potentials from those at the parameters' cells, where not saturated."""
        cells, _ = self._unsaturated
        keep = sparse.dia_array((cells[None].astype(float), [0]), shape=(len(cells), len(cells)))
        return sparse.csr_array(keep @ (self.layout.subset_sums @ self.layout.differences))

    @cached_property
    def expand(self) -> Matrix:
        """Cells by coordinates: log odds of all cells against their row's reference."""
        cells, parameters = self._unsaturated
        d = len(self.free)
        coordinate = np.full(self.layout.cells, -1)
        coordinate[self.free] = np.arange(d)
        saturated = np.flatnonzero((coordinate >= 0) & ~cells)
        direct = sparse.csr_array(
            (np.ones(len(saturated)), (saturated, coordinate[saturated])), shape=(self.layout.cells, d)
        )
        if not cells.any():
            return direct
        chosen = np.flatnonzero(parameters)
        select = sparse.csr_array(
            (np.ones(len(chosen)), (chosen, coordinate[self.layout.feature_cells[chosen]])), shape=(len(parameters), d)
        )
        return sparse.csr_array(direct + self._completion @ select)

    @cached_property
    def correction(self) -> Matrix:
        """Cells by rows: what messages add to log odds that no parameter of their clique can express."""
        cells, _ = self._unsaturated
        messages = self.layout.message_differences
        keep = sparse.dia_array((cells[None].astype(float), [0]), shape=(len(cells), len(cells)))
        left = sparse.csr_array(keep @ messages - self._completion @ messages[self.layout.feature_cells])
        left.data[np.abs(left.data) < 0.5] = 0
        left.eliminate_zeros()
        return left

    @cached_property
    def corrected(self) -> tuple[slice, ...]:
        """The cells of the levels that messages correct, from the deepest."""
        lengths = np.diff(self.correction.indptr)
        return tuple(level.cells for level in reversed(self.layout.levels) if lengths[level.cells].any())

    @cached_property
    def theta_of_cells(self) -> Matrix:
        """Parameters by cells: the part of θ that is linear in the log odds."""
        layout, d = self.layout, self.problem.model.parameters
        feature = layout.feature_cells
        at_first = layout.first[layout.row_of[feature]]
        ones = np.ones(d)
        pick = sparse.csr_array((ones, (np.arange(d), feature)), shape=(d, layout.cells))
        less = sparse.csr_array((ones, (np.arange(d), at_first)), shape=(d, layout.cells))
        return sparse.csr_array(layout.differences @ (pick - less))

    @cached_property
    def theta_of_rows(self) -> Matrix:
        """Parameters by rows: the part of θ that is linear in ℓ."""
        found = sparse.csr_array(
            -(self.layout.differences @ self.layout.message_differences[self.layout.feature_cells])
        )
        found.data[np.abs(found.data) < 0.5] = 0
        found.eliminate_zeros()
        return found

    @property
    def parameters(self) -> int:
        """Number of coordinates of θ."""
        return self.problem.model.parameters
