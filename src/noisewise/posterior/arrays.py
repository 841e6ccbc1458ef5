"""A problem on its layout: noisy counts per cell of the cliques, coordinates, and everything else a target needs.

Plain NumPy and SciPy; `target.py` turns it into JAX arrays.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from noisewise.posterior.layout import Layout, Matrix
from noisewise.posterior.problem import Problem
from noisewise.posterior.restricted import Restricted, offsets, restricted
from noisewise.posterior.start import starting_odds


class Centre(NamedTuple):
    """A point that maps are made around."""

    free: np.ndarray
    """Log odds of the coordinates."""
    log_p: np.ndarray
    """Log p(cell | row) of all cells."""
    expected: np.ndarray
    """Expected counts of the rows."""


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
    def start(self) -> np.ndarray:
        """A point estimate of log p(cell | row), up to a constant in every row."""
        return starting_odds(self) + self.offset

    @cached_property
    def offset(self) -> np.ndarray:
        """What is added to the log odds of every cell: 0, or very low where it cannot occur."""
        return offsets(self.layout) if self.problem.model.impossible else np.zeros(self.layout.cells)

    @cached_property
    def _restricted(self) -> Restricted | None:
        return restricted(self.layout, self.start, self.offset) if self.problem.model.impossible else None

    @cached_property
    def anchors(self) -> np.ndarray:
        """For every row the cell whose probability enters ℓ = -log p(cell | row), the message to the parent."""
        return self.layout.first if self._restricted is None else self._restricted.reference

    @cached_property
    def at_anchors(self) -> Matrix:
        """Rows by cells: the anchors."""
        entries = (np.ones(self.layout.rows), (np.arange(self.layout.rows), self.anchors))
        return sparse.csr_array(entries, shape=(self.layout.rows, self.layout.cells))

    @cached_property
    def reference(self) -> np.ndarray:
        """The cell of every row against which its log odds are taken: a large one, where there is a choice.

        A saturated clique may take any cell of each row. Another takes one level of each column: its coordinates
        are the interactions against those levels, and log odds against an empty cell would be poorly determined.
        """
        if self._restricted is not None:
            return self._restricted.reference
        layout, chosen = self.layout, np.zeros(self.layout.rows, np.intp)
        for i, (clique, saturated) in enumerate(zip(layout.cliques, layout.saturated, strict=True)):
            if saturated:
                table = self.start[clique.cells].reshape(clique.rows.stop - clique.rows.start, -1)
                chosen[clique.rows] = layout.first[clique.rows] + table.argmax(1)
            else:
                at = np.zeros(self._codes[i].shape[1], bool) | (self._codes[i][len(clique.separator) :] == 0).all(0)
                chosen[clique.rows] = clique.cells.start + np.flatnonzero(at)
        return chosen

    @cached_property
    def _codes(self) -> dict[int, np.ndarray]:
        """For cliques that are not saturated, the levels of every cell, counted so that the most frequent is 0."""
        found = {}
        for i, (clique, saturated) in enumerate(zip(self.layout.cliques, self.layout.saturated, strict=True)):
            if not saturated:
                codes = np.indices(self.problem.model.tree.shape(clique.columns))
                codes = codes.reshape(len(codes), -1)
                weight = np.exp(self.start[clique.cells] - self.start[clique.cells].max())
                for column in codes:
                    most = int(np.bincount(column, weight).argmax())
                    at_most, at_first = column == most, column == 0
                    column[at_most], column[at_first] = 0, most
                found[i] = codes
        return found

    @cached_property
    def free(self) -> np.ndarray:
        """The cell of every coordinate: the log odds of this cell against its row's reference."""
        if self._restricted is not None:
            return self._restricted.free
        cells = [
            np.setdiff1d(np.arange(self.layout.cells)[clique.cells], self.reference[clique.rows])
            if saturated
            else clique.cells.start + self._local[i][0]
            for i, (clique, saturated) in enumerate(zip(self.layout.cliques, self.layout.saturated, strict=True))
        ]
        return np.concatenate(cells)

    @cached_property
    def _local(self) -> dict[int, tuple[np.ndarray, Matrix]]:
        """For cliques that are not saturated: the cells of their coordinates, and all cells from those."""
        return {i: _completion(self.layout, i, codes) for i, codes in self._codes.items()}

    @cached_property
    def expand(self) -> Matrix:
        """Cells by coordinates: log odds of all cells against their row's reference."""
        if self._restricted is not None:
            return self._restricted.expand
        coordinate = np.full(self.layout.cells, -1)
        coordinate[self.free] = np.arange(len(self.free))
        parts = []
        for i, clique in enumerate(self.layout.cliques):
            here = np.arange(self.layout.cells)[clique.cells]
            if i in self._local:
                cells, completion = self._local[i]
                entries = completion.tocoo()
                places = (
                    here[entries.coords[0]],
                    coordinate[clique.cells.start + cells][entries.coords[1]],
                    entries.data,
                )
            else:
                own = here[coordinate[here] >= 0]
                places = own, coordinate[own], np.ones(len(own))
            parts.append(places)
        rows, columns, data = (np.concatenate(of) for of in zip(*parts, strict=True))
        return sparse.csr_array((data, (rows, columns)), shape=(self.layout.cells, len(self.free)))

    @cached_property
    def correction(self) -> Matrix:
        """Cells by rows: what messages add to log odds that no parameter of their clique can express."""
        if self._restricted is not None:
            return self._restricted.correction
        messages = self.layout.message_differences
        parts = []
        for i, clique in enumerate(self.layout.cliques):
            if i in self._local:
                cells, completion = self._local[i]
                own = messages[clique.cells]
                own = own - own[(self.reference - clique.cells.start)[self.layout.row_of[clique.cells]]]
                part = sparse.csr_array(own - completion @ own[cells])
                part.data[np.abs(part.data) < 0.5] = 0  # rounding: the entries are whole numbers
                part.eliminate_zeros()
            else:
                part = sparse.csr_array((clique.cells.stop - clique.cells.start, self.layout.rows))
            parts.append(part)
        return sparse.vstack(parts, format="csr")

    @cached_property
    def corrected(self) -> tuple[slice, ...]:
        """The cells of the levels that messages correct, from the deepest."""
        lengths = np.diff(self.correction.indptr)
        return tuple(level.cells for level in reversed(self.layout.levels) if lengths[level.cells].any())

    def centre(self, log_cells: np.ndarray) -> Centre:
        """The point of the model next to a logarithm of every cell, each row of it up to a constant."""
        free = log_cells[self.free] - log_cells[self.reference[self.layout.row_of[self.free]]]
        odds = self.expand @ free + self.offset
        for cells in self.corrected:
            odds[cells] += self.correction[cells] @ -_log_p(self.layout, odds)[self.anchors]
        log_p = _log_p(self.layout, odds)
        p = np.exp(log_p)
        expected = np.full(self.layout.rows, float(self.problem.rows))
        for above, below in pairwise(self.layout.levels):
            counts = expected[self.layout.row_of[above.cells]] * p[above.cells]
            expected[below.rows] = self.layout.separator_sums[below.rows, above.cells] @ counts
        return Centre(free, log_p, expected)

    @cached_property
    def theta_of_cells(self) -> Matrix:
        """Parameters by cells: the part of θ that is linear in the log odds."""
        if self._restricted is not None:
            return self._restricted.theta_of_cells
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
        if self._restricted is not None:
            return self._restricted.theta_of_rows
        found = sparse.csr_array(
            -(self.layout.differences @ self.layout.message_differences[self.layout.feature_cells])
        )
        found.data[np.abs(found.data) < 0.5] = 0
        found.eliminate_zeros()
        return found

    @property
    def coordinates(self) -> int:
        """Number of coordinates: as many as parameters."""
        return len(self.free)


def _log_p(layout: Layout, odds: np.ndarray) -> np.ndarray:
    top = np.maximum.reduceat(odds, layout.first)
    total = np.log(np.add.reduceat(np.exp(odds - top[layout.row_of]), layout.first)) + top
    return np.asarray(odds - total[layout.row_of])


def _completion(layout: Layout, number: int, codes: np.ndarray) -> tuple[np.ndarray, Matrix]:
    """Cells of the interactions of a clique that is not saturated, and the matrix from log odds there to all cells.

    Log odds are sums of interactions over the subsets of a cell's columns that are not at their reference level;
    interactions are alternating sums of log odds.
    """
    clique = layout.cliques[number]
    tree = layout.model.tree
    if not clique.blocks:  # columns that nothing measures: every level is as likely as any other
        return np.zeros(0, np.intp), sparse.csr_array((codes.shape[1], 0))
    own, cells, sums, signs, start = clique.columns, [], [], [], 0
    places: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
    for block in clique.blocks:
        axes = [own.index(c) for c in block.columns]
        others = [k for k in range(len(own)) if k not in axes]
        at = np.flatnonzero((codes[axes] > 0).all(0) & (codes[others] == 0).all(0))
        at = at[np.lexsort(codes[axes][::-1][:, at])]
        shape = tuple(tree.sizes[c] - 1 for c in block.columns)
        levels = np.stack(np.unravel_index(np.arange(len(at)), shape))
        kept = np.flatnonzero((codes[axes] > 0).all(0))
        sums.append((kept, start + np.ravel_multi_index(tuple(codes[axes][:, kept] - 1), shape)))
        places[block.columns] = start, shape
        for columns, (first, sizes) in places.items():
            if set(columns) <= set(block.columns):
                chosen = tuple(levels[block.columns.index(c)] for c in columns)
                to = first + np.ravel_multi_index(chosen, sizes)
                sign = (-1.0) ** (len(block.columns) - len(columns))
                signs.append((start + np.arange(len(at)), to, np.full(len(at), sign)))
        cells.append(at)
        start += len(at)
    add = sparse.csr_array(
        (np.ones(sum(len(a) for a, _ in sums)), tuple(np.concatenate(of) for of in zip(*sums, strict=True))),
        shape=(codes.shape[1], start),
    )
    rows, columns_, data = (np.concatenate(of) for of in zip(*signs, strict=True))
    return np.concatenate(cells), sparse.csr_array(
        add @ sparse.csr_array((data, (rows, columns_)), shape=(start, start))
    )
