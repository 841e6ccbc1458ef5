"""The posterior along one coordinate's line, the other coordinates held at a point estimate.

What a map is made from: close to the posterior's conditional density, cheap, and with an exact derivative. Only the
counts of the coordinate's own clique are looked at, their sampling variance taken as that of independent counts.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from noisewise.posterior.arrays import Arrays, Centre

Grid = Float[np.ndarray, "points coordinates"]

LOST = 3.0
"""A row is lost if it expects fewer than this many standard deviations of the noise in one cell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixed:
    """What a coordinate of a clique that is not saturated moves: several cells, seen in sums."""

    log_p: np.ndarray
    """Log p(cell | row) of all cells of the rows it moves."""
    moves: np.ndarray
    """What a unit of the coordinate adds to their log odds."""
    first: np.ndarray
    """The first cell of each of these rows."""
    row_of: np.ndarray
    """The row of each of these cells."""
    total: np.ndarray
    """Expected count of each row."""
    sums: np.ndarray
    """Measured parts by cells."""
    rest: np.ndarray
    """What other cells contribute to the parts."""
    count: np.ndarray
    """Noisy counts of the parts."""
    variance: np.ndarray
    """Variance of their noise."""

    def log_likelihood(self, shift: Float[np.ndarray, " points"]) -> tuple[np.ndarray, np.ndarray]:
        """At shifts of the coordinate, and the derivative."""
        odds = self.log_p[:, None] + self.moves[:, None] * shift
        odds -= np.maximum.reduceat(odds, self.first, axis=0)[self.row_of]
        share = np.exp(odds)
        share /= np.add.reduceat(share, self.first, axis=0)[self.row_of]
        average = np.add.reduceat(share * self.moves[:, None], self.first, axis=0)[self.row_of]
        cells = self.total[self.row_of, None] * share
        mean = self.sums @ cells + self.rest[:, None]
        change = self.sums @ (cells * (self.moves[:, None] - average))
        value, by_mean = _normal(self.count[:, None], mean, self.variance[:, None])
        return value.sum(0), (by_mean * change).sum(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Log g(δ) for a shift δ of each coordinate.

    In a clique that was measured as a whole, a shift changes the cell's own count, and divides what is left of the row
    among its other cells as before.
    """

    count: np.ndarray
    """The noisy count of the coordinate's cell."""
    variance: np.ndarray
    """Variance of the noise in it; infinite if it was not measured."""
    total: np.ndarray
    """Expected count of the row."""
    share: np.ndarray
    """The cell's share of the row at δ = 0."""
    others: np.ndarray
    """What the row's other cells know about a common factor of theirs: precision, and precision times value."""
    precision: np.ndarray
    """Of the prior along the line."""
    slope: np.ndarray
    """Derivative of the log prior at δ = 0."""
    mixed: dict[int, Mixed]
    """The coordinates that move sums of cells."""

    def log_density(self, shift: Grid) -> tuple[Grid, Grid]:
        """Log g up to a constant, and its derivative."""
        odds = np.log(self.share) - np.log1p(-self.share) + shift
        small = np.exp(-np.abs(odds))
        share, rest = np.where(odds > 0, 1, small) / (1 + small), np.where(odds > 0, small, 1) / (1 + small)
        mean = self.total * share
        value, by_mean = _normal(self.count, mean, self.variance)
        factor = rest / (1 - self.share)
        value = value - 0.5 * self.others[0] * factor**2 + self.others[1] * factor
        slope = by_mean * mean * rest - (self.others[1] - self.others[0] * factor) * factor * share
        for j, mixed in self.mixed.items():
            value[:, j], slope[:, j] = mixed.log_likelihood(shift[:, j])
        value = value - 0.5 * self.precision * shift**2 + self.slope * shift
        return value, slope - self.precision * shift + self.slope


def _normal(count: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log density of a count with noise and as much sampling variance as its mean; derivative by the mean."""
    whole, left = variance + mean, count - mean
    value = -0.5 * left**2 / whole - 0.5 * np.log1p(mean / variance)
    return value, left / whole + 0.5 * left**2 / whole**2 - 0.5 / whole


def lines_through(arrays: Arrays, centre: Centre) -> Lines:
    """The lines through a point."""
    free, layout = arrays.free, arrays.layout
    _, log_p, expected = centre
    share = np.clip(np.exp(log_p), 1e-12, 1 - 1e-12)
    row = layout.row_of[free]
    weight = np.where(_lost(arrays, expected)[layout.row_of], 0.0, arrays.weight)
    cells = expected[layout.row_of] * share
    tells = weight / (1 + weight * cells)
    squared, product = cells**2 * tells, cells * arrays.count * tells
    others = [np.add.reduceat(of, layout.first)[row] - of[free] for of in (squared, product)]
    theta = arrays.theta_of_cells @ log_p - arrays.theta_of_rows @ log_p[arrays.anchors]
    moves = arrays.theta_of_cells @ arrays.expand
    precision = arrays.problem.prior.stddev**-2.0
    return Lines(
        count=arrays.count[free],
        variance=1 / np.maximum(weight[free], 1e-30),
        total=expected[row],
        share=share[free],
        others=np.stack(others),
        precision=precision * np.maximum(np.asarray((moves**2).sum(0)).reshape(-1), 1e-12),
        slope=-precision * (moves.T @ theta),
        mixed=_mixed(arrays, log_p, cells, expected),
    )


def _lost(arrays: Arrays, expected: np.ndarray) -> np.ndarray:
    """Which rows have so few expected rows of the table that the noise hides how they divide."""
    weight = np.maximum.reduceat(arrays.weight, arrays.layout.first)
    return np.asarray((weight > 0) & (expected**2 * weight < LOST**2))


def _mixed(arrays: Arrays, log_p: np.ndarray, cells: np.ndarray, expected: np.ndarray) -> dict[int, Mixed]:
    layout, found = arrays.layout, {}
    moved_cells = arrays.expand.tocsc()
    parts_of = arrays.part_sums.T.tocsr()
    whole = arrays.part_sums @ cells
    for j in np.flatnonzero(np.diff(moved_cells.indptr) > 0):
        at = moved_cells.indices[moved_cells.indptr[j] : moved_cells.indptr[j + 1]]
        parts = np.unique(parts_of[at].indices)
        parts = parts[arrays.part_weight[parts] > 0]
        if not len(parts):
            continue
        rows = np.unique(layout.row_of[at])
        kept = np.flatnonzero(np.isin(layout.row_of, rows))
        moves = np.zeros(layout.cells)
        moves[at] = moved_cells.data[moved_cells.indptr[j] : moved_cells.indptr[j + 1]]
        row_of = np.searchsorted(rows, layout.row_of[kept])
        sums = arrays.part_sums[parts][:, kept]
        found[int(j)] = Mixed(
            log_p=log_p[kept],
            moves=moves[kept],
            first=np.searchsorted(row_of, np.arange(len(rows))),
            row_of=row_of,
            total=expected[rows],
            sums=sums.toarray(),
            rest=np.maximum(whole[parts] - sums @ cells[kept], 0.0),
            count=arrays.part_count[parts],
            variance=1 / arrays.part_weight[parts],
        )
    return found
