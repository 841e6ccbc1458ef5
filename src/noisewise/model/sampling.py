"""Independent rows from the maximum-entropy distribution, clique by clique down the junction tree.

Each clique draws its new columns given those its parent has drawn, by inverting the conditional distribution
function at one uniform number per row. A guide table makes that fast: the unit interval is cut into equal
buckets, and for nearly all of them every number inside leads to the same value. For the others the value is
found by bisection, so the result is that of the plain inversion, bit for bit, and no approximation.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Integer

from noisewise.model.junction_tree import JunctionTree
from noisewise.model.maxent import MaxEnt

MAX_GUIDE = 1 << 16  # entries: what fits into a processor's second cache


def draw_rows(
    model: MaxEnt, theta: Float[np.ndarray, " parameters"], rows: int, stream: np.random.Generator
) -> Integer[np.ndarray, "rows columns"]:
    """Draw independent rows of level codes."""
    return RowSampler.of(model, theta).draw(rows, stream)


class RowSampler:
    """The conditional distributions of one distribution of rows, worked out once to draw from many times."""

    def __init__(self, tree: JunctionTree, log_conditionals: Sequence[np.ndarray]) -> None:
        """`log_conditionals` holds the table log p(residual | separator) of every clique."""
        self._tree = tree
        self._conditionals = [self._inverse(i, table) for i, table in enumerate(log_conditionals)]

    @classmethod
    def of(cls, model: MaxEnt, theta: Float[np.ndarray, " parameters"]) -> "RowSampler":
        """The sampler of the model at θ."""
        return cls(model.tree, model.log_conditionals(theta)[0])

    def _inverse(self, i: int, log_conditional: np.ndarray) -> "Inverse":
        separator, residual = self._tree.separators[i], self._tree.residuals[i]
        axes = [self._tree.cliques[i].index(c) for c in (*separator, *residual)]
        size = int(np.prod(self._tree.shape(residual), dtype=np.int64))
        return Inverse(cumulative(np.transpose(np.exp(log_conditional), axes).reshape(-1, size)))

    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Draw independent rows of level codes."""
        tree = self._tree
        codes = np.zeros((rows, len(tree.sizes)), np.min_scalar_type(max(tree.sizes) - 1), order="F")
        for i, inverse in enumerate(self._conditionals):
            separator, residual = tree.separators[i], tree.residuals[i]
            given = _ravel(codes, separator, tree.shape(separator))
            drawn = inverse.at(given, stream.random(rows))
            shape = tree.shape(residual)
            for column, levels in zip(residual, np.indices(shape).reshape(len(shape), -1), strict=True):
                codes[:, column] = levels.astype(codes.dtype).take(drawn)
        return codes


def cumulative(conditionals: Float[np.ndarray, "given values"]) -> Float[np.ndarray, "given values"]:
    """Distribution functions along the rows. The last entry is exactly 1, and a value of probability 0 adds nothing."""
    sums = np.cumsum(conditionals, axis=1)
    return np.asarray(sums / sums[:, -1:])


class Inverse:
    """Distribution functions with what makes their inversion fast."""

    def __init__(self, distribution: Float[np.ndarray, "given values"]) -> None:
        self._distribution = distribution
        self._lows, self._highs = _guide(distribution)

    def at(
        self, given: Integer[np.ndarray, " rows"], uniforms: Float[np.ndarray, " rows"]
    ) -> Integer[np.ndarray, " rows"]:
        """The first value at which each row's distribution function exceeds its uniform number."""
        buckets = self._lows.shape[1]
        entry = given * buckets + (uniforms * buckets).astype(np.intp)
        low = self._lows.reshape(-1).take(entry)
        high = self._highs.reshape(-1).take(entry)
        unsure = np.flatnonzero(low != high)
        low[unsure] = _bisect(self._distribution, given[unsure], uniforms[unsure], low[unsure], high[unsure])
        return low


def invert(
    distribution: Float[np.ndarray, "given values"],
    given: Integer[np.ndarray, " rows"],
    uniforms: Float[np.ndarray, " rows"],
) -> Integer[np.ndarray, " rows"]:
    """The first value at which each row's distribution function exceeds its uniform number."""
    return Inverse(distribution).at(given, uniforms)


def _guide(
    distribution: Float[np.ndarray, "given values"],
) -> tuple[Integer[np.ndarray, "given buckets"], Integer[np.ndarray, "given buckets"]]:
    """For every bucket the values at its two ends.

    Multiplying by a power of two is exact, so a step of the distribution function lies at or below the start of
    bucket b if ⌈F·buckets⌉ ≤ b, and below its end if ⌊F·buckets⌋ ≤ b. Counting the steps gives the values.
    """
    count, size = distribution.shape
    buckets = 1 << max(0, min(12, (MAX_GUIDE // count).bit_length() - 1))
    scaled, kind = distribution * buckets, np.min_scalar_type(size)
    return _steps(np.ceil(scaled), buckets).astype(kind), _steps(np.floor(scaled), buckets).astype(kind)


def _steps(bucket: Float[np.ndarray, "given values"], buckets: int) -> Integer[np.ndarray, "given buckets"]:
    """How many of each row's entries are at most 0, at most 1, and so on."""
    count = len(bucket)
    flat = bucket.astype(np.intp) + np.arange(count)[:, None] * (buckets + 1)
    found = np.bincount(flat.reshape(-1), minlength=count * (buckets + 1)).reshape(count, -1)
    return np.cumsum(found[:, :buckets], axis=1)


def _bisect(
    distribution: Float[np.ndarray, "given values"],
    given: Integer[np.ndarray, " unsure"],
    uniforms: Float[np.ndarray, " unsure"],
    low: Integer[np.ndarray, " unsure"],
    high: Integer[np.ndarray, " unsure"],
) -> Integer[np.ndarray, " unsure"]:
    """Halve the interval of every row until its ends meet."""
    low, high = low.astype(np.intp), high.astype(np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        beyond = distribution[given, np.minimum(middle, distribution.shape[1] - 1)] <= uniforms
        low, high = np.where(beyond & (low < high), middle + 1, low), np.where(beyond, high, middle)
    return low


def _ravel(codes: np.ndarray, columns: tuple[int, ...], shape: tuple[int, ...]) -> Integer[np.ndarray, " rows"]:
    flat = np.zeros(len(codes), np.intp)
    for column, size in zip(columns, shape, strict=True):
        flat *= size
        flat += codes[:, column]
    return flat
