"""Where to begin: a point estimate of the log odds, without a search.

Noisy counts are made positive by a soft floor at the size of their noise. A clique that was measured as a whole takes
its rows' shares from them; another is fitted to its measured parts by a few sweeps of iterative proportional fitting.
"""

from typing import TYPE_CHECKING

import numpy as np

from noisewise.posterior.layout import Clique, Matrix

if TYPE_CHECKING:
    from noisewise.posterior.arrays import Arrays

SWEEPS = 10


def soft_floor(count: np.ndarray, stddev: np.ndarray) -> np.ndarray:
    """Positive counts: the count itself where it is large, a fraction of the noise where it is lost in it."""
    scale = 0.7 * stddev
    return scale * np.logaddexp(0, count / scale) + 1e-3 * scale


def starting_odds(arrays: "Arrays") -> np.ndarray:
    """Log p(cell | row), up to a constant in every row, for all cells of all cliques."""
    layout = arrays.layout
    measured = arrays.weight > 0
    stddev = 1 / np.sqrt(np.where(measured, arrays.weight, 1.0))
    table = np.where(measured, soft_floor(arrays.count, stddev), 1.0)
    positive = soft_floor(arrays.part_count, 1 / np.sqrt(np.where(arrays.part_weight > 0, arrays.part_weight, 1.0)))
    ends = np.cumsum([0, *(len(_part(arrays, clique)) for clique in layout.cliques)])
    for clique in layout.cliques:
        own = _part(arrays, clique)
        if len(own) and ends[-1]:
            sums = arrays.part_sums[own][:, clique.cells]
            table[clique.cells] = _fitted(sums, positive[own], arrays.part_weight[own] > 0, table[clique.cells])
    return np.log(table)


def _part(arrays: "Arrays", clique: Clique) -> np.ndarray:
    """The measured parts of a clique."""
    return np.flatnonzero(np.diff(arrays.part_sums[:, clique.cells].indptr)) if clique.inner else np.zeros(0, np.intp)


def _fitted(sums: Matrix, target: np.ndarray, known: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Multiply cells by the geometric mean of what their parts ask for, until they hardly ask any more."""
    weight = sums.T @ known.astype(float)
    table = table * target[known].sum() / max(weight.max(initial=1.0) * table.sum(), 1e-300)
    for _ in range(SWEEPS * 4):
        ask = np.where(known, np.log(target) - np.log(sums @ table), 0.0)
        table = table * np.exp((sums.T @ ask) / np.maximum(weight, 1))
    return table
