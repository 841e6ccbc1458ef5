"""The posterior's log density in linear time, for JAX.

The likelihood is the paper's, N(noisy; nμ, nΣ + noise), taken apart along the junction tree. Cliques without children
that were measured as a whole are integrated out in closed form; the counts of the others are latent, driven by standard
normals z. Integrating z out as well gives the paper's density exactly. The derivation is in docs/posterior.md.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noisewise.posterior.arrays import Arrays
from noisewise.posterior.gathers import SparseMap, multiply, sparse_map, transposed

TINY = 1e-280  # inside square roots: their derivative stays finite where a probability is too small for a double


class Level(NamedTuple):
    """The inner cliques of one level."""

    row_sums: SparseMap
    """The rows of its inner cliques by their cells."""
    down: SparseMap
    """The next level's rows by its inner cells: separator sums."""
    parts: SparseMap
    """Its measured parts by its inner cells."""
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
    anchors: SparseMap
    """The cell of every row that enters ℓ."""
    offset: Any
    """What is added to the log odds: very low for cells that cannot occur."""
    theta_of_cells: SparseMap
    """θ from the log odds."""
    theta_of_rows: SparseMap
    """θ from ℓ."""
    levels: tuple[Level, ...]
    """The levels, from the roots."""


class Shape(NamedTuple):
    """What is known when compiling: where levels begin and end."""

    levels: tuple[tuple[int, int, int], ...]
    """End of each level's cells, numbers of its inner cells and their rows."""
    roots: int
    """Number of rows of the roots."""

    @property
    def latent(self) -> int:
        """Number of latent counts."""
        return sum(inner for _, inner, _ in self.levels)


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
    shape = tuple(
        (
            level.cells.stop,
            level.inner_cells.stop - level.inner_cells.start,
            level.inner_rows.stop - level.inner_rows.start,
        )
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
        anchors=sparse_map(arrays.at_anchors),
        offset=arrays.offset,
        theta_of_cells=sparse_map(arrays.theta_of_cells),
        theta_of_rows=sparse_map(arrays.theta_of_rows),
        levels=tuple(levels),
    )
    return data, Shape(shape, layout.levels[0].rows.stop)


def _corrections(arrays: Arrays) -> tuple[SparseMap, ...]:
    found = []
    for kept in arrays.corrected:
        cells = np.zeros(arrays.layout.cells)
        cells[kept] = 1
        found.append(sparse_map(arrays.correction * cells[:, None]))
    return tuple(found)


class Passed(NamedTuple):
    """What one pass down the tree gives."""

    log_p: Array
    """Log p(cell | row) of all cells."""
    expected: Array
    """Expected counts of all rows."""
    deviation: Array
    """What the latent counts of all rows are above them."""
    parts: Array
    """Log likelihood of the measured parts."""


def pass_down(
    free: Float[Array, " coordinates"], normals: Float[Array, " latent"], data: TargetData, shape: Shape
) -> Passed:
    """Go through the levels from the roots: shares, expected counts, latent counts."""
    odds = _corrected(multiply(data.expand, free) + data.offset, data)
    log_p = odds - multiply(transposed(data.row_sums), _log_total(odds, data.row_sums))
    p = jnp.exp(log_p)
    expected, deviation = [data.rows * jnp.ones(shape.roots)], [jnp.zeros(shape.roots)]
    parts, cell, used = jnp.zeros(()), 0, 0
    for level, (cells, inner_cells, inner_rows) in zip(data.levels, shape.levels, strict=True):
        if inner_cells:
            inner = slice(cell, cell + inner_cells)
            z = normals[used : used + inner_cells]
            used += inner_cells
            q, log_q, weight = p[inner], log_p[inner], data.weight[inner]
            spreading = transposed(level.row_sums)
            total = multiply(spreading, expected[-1][:inner_rows])
            count = total * q
            gain = 1 / (1 + count * weight)
            share = q * gain
            mean = count * weight * gain * (data.count[inner] - count)
            noise = jnp.sqrt(total + TINY) * jnp.exp(0.5 * log_q) * jnp.sqrt(gain) * z
            missing = deviation[-1][:inner_rows] - multiply(level.row_sums, mean + noise)
            x = mean + noise + share * multiply(spreading, missing / multiply(level.row_sums, share))
            left = level.part_count - multiply(level.parts, count + x)
            parts = parts - 0.5 * (level.part_weight * left) @ left
            expected.append(multiply(level.down, count))
            deviation.append(multiply(level.down, x))
        cell = cells
    return Passed(log_p, jnp.concatenate(expected), jnp.concatenate(deviation), parts)


def _corrected(odds: Array, data: TargetData) -> Array:
    for correction in data.corrections:
        ell = _log_total(odds, data.row_sums) - multiply(data.anchors, odds)
        odds = odds + multiply(correction, ell)
    return odds


def _log_total(odds: Array, row_sums: SparseMap) -> Array:
    # One cell of every row has log odds near zero; the bound keeps the others from overflowing.
    return jnp.log(multiply(row_sums, jnp.exp(jnp.minimum(odds, 600.0))))


def theta_from(log_p: Array, data: TargetData) -> Array:
    """θ; a constant added to a row's log odds has no effect."""
    return multiply(data.theta_of_cells, log_p) - multiply(data.theta_of_rows, multiply(data.anchors, log_p))


def log_density(
    free: Float[Array, " coordinates"], normals: Float[Array, " latent"], data: TargetData, shape: Shape
) -> Float[Array, ""]:
    """Log posterior density of the coordinates and z together, up to a constant."""
    log_p, expected, deviation, parts = pass_down(free, normals, data, shape)
    theta = theta_from(log_p, data)
    p = jnp.exp(log_p)
    count = multiply(transposed(data.row_sums), expected) * p
    gain = 1 / (1 + count * data.weight)
    scaled = (data.count - count) * data.weight * gain
    spread = multiply(data.row_sums, p * gain)
    pull = multiply(data.row_sums, p * scaled)
    grip = multiply(data.row_sums, p * p * data.weight * gain)
    cells = 0.5 * jnp.log(gain) - 0.5 * scaled * (data.count - count)
    rows = -0.5 * jnp.log(spread) + (pull * deviation - 0.5 * expected * pull**2 - 0.5 * grip * deviation**2) / spread
    prior = -0.5 * data.prior_precision * theta @ theta
    return cells.sum() + rows.sum() + parts - 0.5 * normals @ normals + prior
