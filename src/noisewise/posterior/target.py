"""The posterior's log density in linear time, for JAX.

The likelihood is the paper's, N(noisy; nμ, nΣ + noise), taken apart along the junction tree. Cliques without children
that were measured as a whole are integrated out in closed form; the counts of the others are latent, driven by standard
normals z. Integrating z out as well gives the paper's density exactly. The derivation is in docs/posterior.md.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import sparse

from noisewise.posterior.arrays import Arrays
from noisewise.posterior.gathers import SparseMap, multiply, sparse_map, transposed

TINY = 1e-280  # inside square roots: their derivative stays finite where a probability is too small for a double


class Level(NamedTuple):
    """The inner cliques of one level."""

    row_sums: SparseMap
    """Its rows by its cells."""
    down: SparseMap
    """The next level's rows by its cells: separator sums."""
    parts: SparseMap
    """Its measured parts by its cells."""
    part_count: Any
    """Noisy counts of the parts."""
    part_weight: Any
    """Their precisions."""


class TargetData(NamedTuple):
    """What the log density is given besides the coordinates: arrays only, so that equal shapes compile once."""

    rows: Any
    """Number of rows n."""
    prior_precision: Any
    """1 / variance of the prior on every θ."""
    count: Any
    """Measured count of every clique cell."""
    weight: Any
    """Its precision; zero where there is none."""
    expand: SparseMap
    """Log odds of all cells from the coordinates."""
    corrections: tuple[SparseMap, ...]
    """What messages add to them, level by level from the deepest; empty if nothing."""
    row_sums: SparseMap
    """Sums over rows."""
    first: SparseMap
    """The first cell of every row."""
    theta_of_cells: SparseMap
    """θ from the log odds."""
    theta_of_rows: SparseMap
    """θ from ℓ."""
    levels: tuple[Level, ...]
    """The levels with inner cliques, from the root."""


class Shape(NamedTuple):
    """What is known when compiling: where levels begin and end."""

    roots: int
    """Number of rows of the roots."""
    inner: tuple[tuple[int, int, int], ...]
    """Start and end of each level's inner cells, and the number of their rows."""

    @property
    def latent(self) -> int:
        """Number of latent counts."""
        return sum(stop - start for start, stop, _ in self.inner)


def target_data(arrays: Arrays) -> tuple[TargetData, Shape]:
    """Prepare a problem."""
    layout, problem = arrays.layout, arrays.problem
    levels = []
    below = (*(level.rows for level in layout.levels[1:]), slice(0, 0))
    for level, next_rows in zip(layout.levels, below, strict=True):
        part_sums = arrays.part_sums[:, level.inner_cells]
        kept = np.flatnonzero(np.diff(part_sums.indptr))
        levels.append(
            Level(
                row_sums=sparse_map(layout.row_sums[level.inner_rows, level.inner_cells]),
                down=sparse_map(layout.separator_sums[next_rows, level.inner_cells]),
                parts=sparse_map(part_sums[kept]),
                part_count=arrays.part_count[kept],
                part_weight=arrays.part_weight[kept],
            )
        )
    inner = tuple(
        (level.inner_cells.start, level.inner_cells.stop, level.inner_rows.stop - level.inner_rows.start)
        for level in layout.levels
    )
    data = TargetData(
        rows=np.float64(problem.rows),
        prior_precision=np.float64(problem.prior.stddev**-2.0),
        count=arrays.count,
        weight=arrays.weight,
        expand=sparse_map(arrays.expand),
        corrections=_corrections(arrays),
        row_sums=sparse_map(layout.row_sums),
        first=sparse_map(_first(arrays)),
        theta_of_cells=sparse_map(arrays.theta_of_cells),
        theta_of_rows=sparse_map(arrays.theta_of_rows),
        levels=tuple(levels),
    )
    return data, Shape(layout.levels[0].rows.stop, inner)


def _first(arrays: Arrays) -> Any:
    layout = arrays.layout
    entries = (np.ones(layout.rows), (np.arange(layout.rows), layout.first))
    return sparse.csr_array(entries, shape=(layout.rows, layout.cells))


def _corrections(arrays: Arrays) -> tuple[SparseMap, ...]:
    found = []
    for kept in arrays.corrected:
        cells = np.zeros(arrays.layout.cells)
        cells[kept] = 1
        found.append(sparse_map(arrays.correction * cells[:, None]))
    return tuple(found)


def log_odds(free: Float[Array, " coordinates"], data: TargetData) -> tuple[Array, Array]:
    """Log p(cell | row) of all cells, and ℓ = -log p(first cell | row)."""
    odds = multiply(data.expand, free)
    for correction in data.corrections:
        _, ell = _normalised(odds, data)
        odds = odds + multiply(correction, ell)
    return _normalised(odds, data)


def _normalised(odds: Array, data: TargetData) -> tuple[Array, Array]:
    # The reference cell's log odds are zero, so no row's sum is below 1; the bound keeps it from overflowing.
    total = multiply(data.row_sums, jnp.exp(jnp.minimum(odds, 600.0)))
    log_total = jnp.log(total)
    log_p = odds - multiply(transposed(data.row_sums), log_total)
    return log_p, -multiply(data.first, log_p)


def theta_from(log_p: Array, ell: Array, data: TargetData) -> Array:
    """θ; a constant added to a row's log odds has no effect."""
    return multiply(data.theta_of_cells, log_p) + multiply(data.theta_of_rows, ell)


def log_density(
    free: Float[Array, " coordinates"], normals: Float[Array, " latent"], data: TargetData, shape: Shape
) -> Float[Array, ""]:
    """Log posterior density of the log odds and z together, up to a constant."""
    log_p, ell = log_odds(free, data)
    theta = theta_from(log_p, ell, data)
    p = jnp.exp(log_p)
    expected, deviation, parts = _counts_of_rows(log_p, p, normals, data, shape)
    count_of_cells = multiply(transposed(data.row_sums), expected) * p
    gain = 1 / (1 + count_of_cells * data.weight)
    scaled = (data.count - count_of_cells) * data.weight * gain
    spread = multiply(data.row_sums, p * gain)
    pull = multiply(data.row_sums, p * scaled) / spread
    grip = multiply(data.row_sums, p * p * data.weight * gain) / spread
    cells = 0.5 * jnp.log(gain) - 0.5 * scaled * (data.count - count_of_cells)
    rows = -0.5 * jnp.log(spread) - 0.5 * expected * spread * pull**2 - 0.5 * grip * deviation**2 + pull * deviation
    prior = -0.5 * data.prior_precision * theta @ theta
    return cells.sum() + rows.sum() + parts - 0.5 * normals @ normals + prior


def _counts_of_rows(
    log_p: Array, p: Array, normals: Array, data: TargetData, shape: Shape
) -> tuple[Array, Array, Array]:
    """Expected counts of all rows, their latent deviations, and the log likelihood of the measured parts."""
    expected, deviation = [jnp.full(shape.roots, data.rows)], [jnp.zeros(shape.roots)]
    parts, used = jnp.zeros(()), 0
    for level, (start, stop, rows) in zip(data.levels, shape.inner, strict=True):
        size = stop - start
        if size == 0:
            break
        above = slice(0, rows)
        q, log_q = p[start:stop], log_p[start:stop]
        weight, z = data.weight[start:stop], normals[used : used + size]
        used += size
        spreading = transposed(level.row_sums)
        total = multiply(spreading, expected[-1][above])
        count = total * q
        gain = 1 / (1 + count * weight)
        share = q * gain
        spread = multiply(level.row_sums, share)
        mean = count * weight * gain * (data.count[start:stop] - count)
        noise = jnp.sqrt(total + TINY) * jnp.exp(0.5 * log_q) * jnp.sqrt(gain) * z
        missing = deviation[-1][above] - multiply(level.row_sums, mean + noise)
        x = mean + noise + share * multiply(spreading, missing / spread)
        left = level.part_count - multiply(level.parts, count + x)
        parts = parts - 0.5 * (level.part_weight * left) @ left
        expected.append(multiply(level.down, count))
        deviation.append(multiply(level.down, x))
    return jnp.concatenate(expected), jnp.concatenate(deviation), parts
