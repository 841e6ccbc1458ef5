"""The same density as in `target`, with its gradient by hand, for many points at once in NumPy.

Nothing is compiled, so that a fit of ordinary size is over before a compiler would have begun. Values run along the
first axis and points along the second. The forward pass keeps what the backward pass needs; the names with
`to_` hold the derivative of the log density by the quantity named.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import sparse

from noisewise.errors import FitError
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.maps import Maps

Points = Float[np.ndarray, "_ points"]
MAX_DENSE = 40_000
TINY = 1e-280


class _Level(NamedTuple):
    inner: slice
    inner_rows: slice
    inner_row_of: np.ndarray
    inner_first: np.ndarray
    normals: slice
    below: slice
    down: Any
    up: Any
    parts: Any
    parts_up: Any
    part_count: np.ndarray
    part_weight: np.ndarray


class _Kept(NamedTuple):
    """One level's forward pass over its inner cells."""

    gain: np.ndarray
    share: np.ndarray
    spread: np.ndarray
    missing: np.ndarray
    scaled: np.ndarray
    noise: np.ndarray
    left: np.ndarray


class Density:
    """Log density and gradient of a problem in (u, z): u through the monotone maps, z as it is."""

    def __init__(self, arrays: Arrays, maps: Maps) -> None:
        layout = arrays.layout
        self.arrays, self.maps, self.row_of, self.first = arrays, maps, layout.row_of, layout.first
        self.anchors, self.offset = arrays.anchors, arrays.offset[:, None]
        self.rows, self.prior = float(arrays.problem.rows), arrays.problem.prior.stddev**-2.0
        self.weight, self.count = arrays.weight[:, None], arrays.count[:, None]
        self.expand, self.contract = _pair(arrays.expand)
        theta = arrays.theta_of_cells - arrays.theta_of_rows @ arrays.at_anchors
        self.theta, self.theta_back = _pair(theta)
        self.corrections = [_pair(_only(arrays.correction, cells)) for cells in arrays.corrected]
        self.levels = _levels(arrays)
        self.latent = self.levels[-1].normals.stop
        self.dimensions = arrays.coordinates + self.latent

    def __call__(self, points: Points) -> tuple[Float[np.ndarray, " points"], Points]:
        """Log density and gradient at many points."""
        free, slope, bend = self.maps(points[: self.arrays.coordinates])
        value, to_free, to_z = self.at(free, points[self.arrays.coordinates :])
        gradient = np.concatenate([to_free * slope + bend / slope, to_z])
        return value + np.log(slope).sum(0), gradient

    def at(self, free: Points, z: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log density of log odds and z, and its derivatives by both."""
        odds = self.expand @ free + self.offset
        shares = []
        for correction, _ in self.corrections:
            log_total = _log_sums(odds, self.first, self.row_of)
            shares.append(np.exp(odds - log_total[self.row_of]))
            odds = odds + correction @ (log_total - odds[self.anchors])
        log_p = odds - _log_sums(odds, self.first, self.row_of)[self.row_of]
        p = np.exp(log_p)
        expected = np.full((len(self.first), free.shape[1]), self.rows)
        deviation = np.zeros_like(expected)
        parts = np.zeros(free.shape[1])
        kept = [self._inner(level, p, expected, deviation, z, parts) for level in self.levels]
        result = self._likelihood(p, expected, deviation)
        value, to_p, to_expected, to_deviation = result
        theta = self.theta @ log_p
        value += parts - 0.5 * (z**2).sum(0) - 0.5 * self.prior * (theta**2).sum(0)
        to_log_p = to_p * p - self.prior * (self.theta_back @ theta)
        to_z = -z
        for level, inner in zip(reversed(self.levels), reversed(kept), strict=True):
            if inner is not None:
                self._back_inner(level, inner, p, expected, to_log_p, to_expected, to_deviation, to_z)
        to_odds = to_log_p - p * np.add.reduceat(to_log_p, self.first, axis=0)[self.row_of]
        for (_, back), share in zip(reversed(self.corrections), reversed(shares), strict=True):
            to_ell = back @ to_odds
            more = share * to_ell[self.row_of]
            more[self.anchors] -= to_ell
            to_odds = to_odds + more
        return value, self.contract @ to_odds, to_z

    def _inner(
        self,
        level: _Level,
        p: np.ndarray,
        expected: np.ndarray,
        deviation: np.ndarray,
        z: np.ndarray,
        parts: np.ndarray,
    ) -> _Kept | None:
        """The latent counts of a level's inner cliques, and what they mean for the level below."""
        if level.inner.start == level.inner.stop:
            return None
        q, weight, own = p[level.inner], self.weight[level.inner], z[level.normals]
        total = expected[level.inner_rows][level.inner_row_of]
        count = total * q
        gain = 1 / (1 + count * weight)
        share = q * gain
        scaled = (self.count[level.inner] - count) * weight * gain
        noise = np.sqrt((total + TINY) * share) * own
        moved = count * scaled + noise
        spread = np.add.reduceat(share, level.inner_first, axis=0)
        missing = (deviation[level.inner_rows] - np.add.reduceat(moved, level.inner_first, axis=0)) / spread
        x = moved + share * missing[level.inner_row_of]
        left = level.part_count[:, None] - level.parts @ (count + x)
        parts -= 0.5 * (level.part_weight[:, None] * left**2).sum(0)
        expected[level.below] = level.down @ count
        deviation[level.below] = level.down @ x
        return _Kept(gain, share, spread, missing, scaled, noise, left)

    def _likelihood(self, p: Any, expected: Any, deviation: Any) -> tuple[Any, Any, Any, Any]:
        """Log likelihood of the counts of whole cliques given their rows' counts, and its derivatives."""
        w, first, row_of = self.weight, self.first, self.row_of
        count = expected[row_of] * p
        gain = 1 / (1 + count * w)
        left = self.count - count
        scaled = left * w * gain
        share = p * gain
        c = np.add.reduceat(share, first, axis=0)
        a = np.add.reduceat(p * scaled, first, axis=0)
        b = np.add.reduceat(p * share * w, first, axis=0)
        value = (0.5 * np.log(gain) - 0.5 * scaled * left).sum(0)
        quadratic = a * deviation - 0.5 * expected * a**2 - 0.5 * b * deviation**2
        value += (quadratic / c - 0.5 * np.log(c)).sum(0)
        to_c = ((-0.5 - quadratic / c) / c)[row_of]
        to_a = ((deviation - expected * a) / c)[row_of]
        to_b = (-0.5 * deviation**2 / c)[row_of]
        to_scaled = to_a * p - 0.5 * left
        to_gain = to_c * p + to_b * p**2 * w + 0.5 / gain + to_scaled * left * w
        to_left = to_scaled * w * gain - 0.5 * scaled
        to_count = -to_left - to_gain * w * gain**2
        to_p = to_c * gain + to_a * scaled + 2 * to_b * share * w + to_count * expected[row_of]
        to_expected = np.add.reduceat(to_count * p, first, axis=0) - 0.5 * a**2 / c
        return value, to_p, to_expected, (a - b * deviation) / c

    def _back_inner(
        self,
        level: _Level,
        kept: _Kept,
        p: np.ndarray,
        expected: np.ndarray,
        to_log_p: np.ndarray,
        to_expected: np.ndarray,
        to_deviation: np.ndarray,
        to_z: np.ndarray,
    ) -> None:
        """Take derivatives by the level below, and by the measured parts, back to this level."""
        gain, share, spread, missing, scaled, noise, left = kept
        q, w, rows, first = p[level.inner], self.weight[level.inner], level.inner_row_of, level.inner_first
        total = expected[level.inner_rows][rows]
        count = total * q
        from_parts = level.parts_up @ (level.part_weight[:, None] * left)
        to_x = level.up @ to_deviation[level.below] + from_parts
        to_count = level.up @ to_expected[level.below] + from_parts
        to_missing = np.add.reduceat(to_x * share, first, axis=0) / spread
        to_spread = -to_missing * missing
        to_share = to_x * missing[rows] + to_spread[rows]
        to_moved = to_x - to_missing[rows]
        to_deviation[level.inner_rows] += to_missing
        to_z[level.normals] += to_moved * np.sqrt((total + TINY) * share)
        half = 0.5 * to_moved * noise
        to_scaled = to_moved * count
        to_count = to_count + to_moved * scaled - to_scaled * w * gain
        to_gain = to_share * q + half / gain + to_scaled * (self.count[level.inner] - count) * w
        to_count -= to_gain * w * gain**2
        to_log_p[level.inner] += (to_share * gain + to_count * total) * q + half
        to_expected[level.inner_rows] += np.add.reduceat(to_count * q + half / (total + TINY), first, axis=0)


def not_computable() -> FitError:
    """What there is to say where the density is no number at the point that a fit begins with."""
    return FitError(
        "The posterior density cannot be computed at the start: the noise is too small beside the counts for "
        "double precision, or a noisy count is not a number. Check the noisy counts and their stddev."
    )


def _log_sums(odds: np.ndarray, first: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    top = np.maximum.reduceat(odds, first, axis=0)
    return np.asarray(np.log(np.add.reduceat(np.exp(odds - top[row_of]), first, axis=0)) + top)


def _pair(matrix: Any) -> tuple[Any, Any]:
    """A matrix and its transpose, dense if small."""
    matrix = sparse.csr_array(matrix)
    if matrix.shape[0] * matrix.shape[1] <= MAX_DENSE:
        dense = matrix.toarray()
        return dense, np.ascontiguousarray(dense.T)
    return matrix, sparse.csr_array(matrix.T)


def _only(matrix: Any, rows: slice) -> Any:
    kept = np.zeros(matrix.shape[0])
    kept[rows] = 1
    return sparse.csr_array(sparse.dia_array((kept[None], [0]), shape=(len(kept), len(kept))) @ matrix)


def _levels(arrays: Arrays) -> tuple[_Level, ...]:
    layout, found, used = arrays.layout, [], 0
    below = (*(level.rows for level in layout.levels[1:]), slice(0, 0))
    for level, next_rows in zip(layout.levels, below, strict=True):
        inner, inner_rows = level.inner_cells, level.inner_rows
        part_sums = arrays.part_sums[:, inner]
        kept = np.flatnonzero(np.diff(part_sums.indptr))
        down, up = _pair(layout.separator_sums[next_rows, inner])
        parts, parts_up = _pair(part_sums[kept])
        size = inner.stop - inner.start
        found.append(
            _Level(
                inner=inner,
                inner_rows=inner_rows,
                inner_row_of=layout.row_of[inner] - level.rows.start,
                inner_first=layout.first[inner_rows] - level.cells.start,
                normals=slice(used, used + size),
                below=next_rows,
                down=down,
                up=up,
                parts=parts,
                parts_up=parts_up,
                part_count=arrays.part_count[kept],
                part_weight=arrays.part_weight[kept],
            )
        )
        used += size
    return tuple(found)
