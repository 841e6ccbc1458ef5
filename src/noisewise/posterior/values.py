"""From log odds to θ and to expected counts, for many draws at once, in NumPy."""

import numpy as np
from jaxtyping import Float

from noisewise.posterior.arrays import Arrays

Draws = Float[np.ndarray, "_ draws"]


def log_probabilities(arrays: Arrays, free: Draws) -> tuple[Draws, Draws]:
    """Log p(cell | row) of all cells, and ℓ = -log p(first cell | row) of all rows."""
    layout = arrays.layout
    odds = arrays.expand @ free
    for cells in arrays.corrected:
        _, ell = normalised(arrays, odds)
        odds[cells] += arrays.correction[cells] @ ell
    log_p, ell = normalised(arrays, odds)
    assert len(ell) == layout.rows
    return log_p, ell


def normalised(arrays: Arrays, odds: Draws) -> tuple[Draws, Draws]:
    """Log odds, up to a constant in every row, as log p(cell | row); and ℓ."""
    layout = arrays.layout
    top = np.maximum.reduceat(odds, layout.first, axis=0)
    total = np.log(np.add.reduceat(np.exp(odds - top[layout.row_of]), layout.first, axis=0)) + top
    log_p = odds - total[layout.row_of]
    return log_p, -log_p[layout.first]


def theta_of(arrays: Arrays, log_p: Draws, ell: Draws) -> Draws:
    """The parameters."""
    return arrays.theta_of_cells @ log_p + arrays.theta_of_rows @ ell


def expected_rows(arrays: Arrays, p: Draws) -> Draws:
    """Expected counts of all rows, n for a root."""
    layout = arrays.layout
    expected = np.full((layout.rows, p.shape[1]), float(arrays.problem.rows))
    for above, below in zip(layout.levels, layout.levels[1:], strict=False):
        counts = expected[layout.row_of[above.cells]] * p[above.cells]
        expected[below.rows] = layout.separator_sums[below.rows, above.cells] @ counts
    return expected


def expected_counts(arrays: Arrays, free: Draws) -> Draws:
    """nμ of the measured cells."""
    log_p, _ = log_probabilities(arrays, free)
    p = np.exp(log_p)
    return arrays.layout.measured_sums @ (expected_rows(arrays, p)[arrays.layout.row_of] * p)
