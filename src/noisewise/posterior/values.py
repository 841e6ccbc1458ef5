"""From log odds to θ and to expected counts, for many draws at once, in NumPy."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from noisewise.posterior.arrays import Arrays

Draws = Float[np.ndarray, "_ draws"]


class Values(NamedTuple):
    """What follows from the coordinates, one column per draw."""

    log_p: Draws
    """Log p(cell | row) of all cells."""
    expected: Draws
    """Expected counts of all rows."""


def values_at(arrays: Arrays, free: Draws) -> Values:
    """Shares and expected counts."""
    layout = arrays.layout
    odds = arrays.expand @ free + arrays.offset[:, None]
    for cells in arrays.corrected:
        ell = -_normalised(odds, layout.first, layout.row_of)[arrays.anchors]
        odds[cells] += arrays.correction[cells] @ ell
    log_p = _normalised(odds, layout.first, layout.row_of)
    expected = np.full((layout.rows, free.shape[1]), float(arrays.problem.rows))
    for above, below in pairwise(layout.levels):
        counts = expected[layout.row_of[above.cells]] * np.exp(log_p[above.cells])
        expected[below.rows] = layout.separator_sums[below.rows, above.cells] @ counts
    return Values(log_p, expected)


def _normalised(odds: np.ndarray, first: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    top = np.maximum.reduceat(odds, first, axis=0)
    total = np.log(np.add.reduceat(np.exp(odds - top[row_of]), first, axis=0)) + top
    return np.asarray(odds - total[row_of])


def theta_of(arrays: Arrays, at: Values) -> Draws:
    """The parameters."""
    return arrays.theta_of_cells @ at.log_p - arrays.theta_of_rows @ at.log_p[arrays.anchors]


def expected_counts(arrays: Arrays, at: Values) -> Draws:
    """nμ of the measured cells."""
    return arrays.layout.measured_sums @ (at.expected[arrays.layout.row_of] * np.exp(at.log_p))
