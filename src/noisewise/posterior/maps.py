"""One monotone map per coordinate, from a standard normal to a log odds as the posterior would have it.

For each coordinate the posterior is approximated along its own line, the others held at a point estimate: a noisy count
whose expectation moves with the log odds, times the prior along the line. The map turns a standard normal into a
draw from that. Where a count is large this is a change of scale; where it is lost in the noise it straightens a plateau
that ends in a cliff. It only has to be close: what it leaves is the sampler's, and the target stays exact.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.special import ndtri

from noisewise.posterior.arrays import Arrays

REACH = 6.0
"""The maps are linear beyond this many standard deviations."""
KNOTS = 49
"""Knots of each map, evenly spaced between the ends."""
GRID = 1200
"""Points of the quadrature behind each map."""
WIDEST = 12.0
"""How many standard deviations of the prior the quadrature reaches."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """What is known about each coordinate on its own line: log g(δ) for a shift δ of its log odds."""

    count: np.ndarray
    """The noisy count that speaks most directly about it."""
    variance: np.ndarray
    """Variance of the noise in it; infinite if nothing was measured."""
    rest: np.ndarray
    """What other cells contribute to the expectation of that count."""
    total: np.ndarray
    """Expected count of the row."""
    share: np.ndarray
    """The cell's share of the row at δ = 0."""
    precision: np.ndarray
    """Of the prior along the line."""
    slope: np.ndarray
    """Derivative of the log prior at δ = 0."""

    def log_density(self, shift: Float[np.ndarray, "points coordinates"]) -> tuple[np.ndarray, np.ndarray]:
        """Log g up to a constant, and its derivative."""
        odds = np.log(self.share) - np.log1p(-self.share) + shift
        share = np.where(odds > 0, 1 / (1 + np.exp(-np.abs(odds))), np.exp(-np.abs(odds)) / (1 + np.exp(-np.abs(odds))))
        mean = self.total * share
        change = mean * (1 - share)
        variance = self.variance + mean + self.rest
        left = self.count - mean - self.rest
        value = -0.5 * left**2 / variance - 0.5 * np.log1p((mean + self.rest) / self.variance)
        by_mean = left / variance + 0.5 * left**2 / variance**2 - 0.5 / variance
        value = value - 0.5 * self.precision * shift**2 + self.slope * shift
        return value, by_mean * change - self.precision * shift + self.slope


@dataclass(frozen=True, kw_only=True, eq=False)
class Maps:
    """Piecewise polynomials of degree five, twice continuously differentiable and increasing."""

    coefficients: Float[np.ndarray, "coordinates pieces 6"]
    """Of each piece, lowest power first, in units of the piece's length."""

    def __call__(self, u: Float[np.ndarray, "coordinates draws"]) -> Float[np.ndarray, "coordinates draws"]:
        """The log odds."""
        inside = np.clip(u, -REACH, REACH)
        place = (inside + REACH) * ((KNOTS - 1) / (2 * REACH))
        piece = np.minimum(place.astype(np.intp), KNOTS - 2)
        t = place - piece
        c = np.moveaxis(self.coefficients[np.arange(len(u))[:, None], piece], -1, 0)
        value = c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))))
        slope = c[1] + t * (2 * c[2] + t * (3 * c[3] + t * (4 * c[4] + t * 5 * c[5])))
        return value + slope * (u - inside) * ((KNOTS - 1) / (2 * REACH))


def lines_at(arrays: Arrays, log_p: np.ndarray, theta: np.ndarray, expected: np.ndarray) -> Lines:
    """The lines through a point: log p(cell | row), θ and the expected count of every row."""
    free, layout = arrays.free, arrays.layout
    share = np.clip(np.exp(log_p), 1e-12, 1 - 1e-12)
    cells = expected[layout.row_of] * share
    weight, count, rest = arrays.weight[free], arrays.count[free].copy(), np.zeros(len(free))
    own = share[free]
    if len(arrays.parts):
        raised = sparse.csc_array(arrays.expand).maximum(0)
        moved = sparse.csc_array(arrays.part_sums @ (raised * cells[:, None]))
        variance = 1 / np.maximum(arrays.part_weight, 1e-30)
        known = arrays.part_weight > 0
        whole = arrays.part_sums @ cells
        for j in np.flatnonzero(weight == 0):
            parts, mass = (
                moved.indices[moved.indptr[j] : moved.indptr[j + 1]],
                moved.data[moved.indptr[j] : moved.indptr[j + 1]],
            )
            if known[parts].any():
                tells = np.where(known[parts], mass**2 / (variance[parts] + whole[parts]), -1)
                best = tells.argmax()
                weight[j], count[j] = arrays.part_weight[parts[best]], arrays.part_count[parts[best]]
                rest[j] = max(whole[parts[best]] - mass[best], 0.0)
                own[j] = min(mass[best] / expected[layout.row_of[free[j]]], 1 - 1e-6)
    moves = arrays.theta_of_cells @ arrays.expand
    precision = arrays.problem.prior.stddev**-2.0
    return Lines(
        count=count,
        variance=1 / np.maximum(weight, 1e-30),
        rest=rest,
        total=expected[layout.row_of[free]],
        share=own,
        precision=precision * np.maximum(np.asarray((moves**2).sum(0)).reshape(-1), 1e-12),
        slope=-precision * (moves.T @ theta),
    )


def monotone_maps(lines: Lines, at: Float[np.ndarray, " coordinates"]) -> Maps:
    """Maps to log odds: `at` holds them at δ = 0."""
    shift = _grid(lines)
    value, _ = lines.log_density(shift)
    density = np.exp(value - value.max(0))
    mass = 0.5 * (density[1:] + density[:-1]) * np.diff(shift, axis=0)
    below = np.concatenate([np.zeros((1, mass.shape[1])), np.cumsum(mass, 0)])
    above = np.concatenate([np.cumsum(mass[::-1], 0)[::-1], np.zeros((1, mass.shape[1]))])
    whole = below[-1]
    u = np.where(below < above, ndtri(below / whole), -ndtri(above / whole))
    log_whole = np.log(whole) + value.max(0)
    knots = np.linspace(-REACH, REACH, KNOTS)
    found = np.stack([_inverse(u[:, j], shift[:, j], value[:, j] - log_whole[j], knots) for j in range(len(at))], 1)
    value, slope = lines.log_density(found)
    first = np.exp(-0.5 * knots[:, None] ** 2 - 0.5 * np.log(2 * np.pi) - (value - log_whole))
    second = first * (-knots[:, None] - slope * first)
    return Maps(coefficients=np.ascontiguousarray(np.moveaxis(_pieces(found + at, first, second), 2, 0)))


def _grid(lines: Lines) -> np.ndarray:
    """Points around each mode, dense at its own scale and reaching to where the prior ends."""
    prior = 1 / np.sqrt(lines.precision)
    centre = lines.slope / lines.precision
    width = WIDEST * prior
    best = centre + np.linspace(-1, 1, 401)[:, None] * width
    step = width / 200
    for _ in range(12):
        value, _ = lines.log_density(best)
        mode = np.take_along_axis(best, value.argmax(0)[None], 0)[0]
        step = step / 4
        best = mode + np.arange(-8, 9)[:, None] * step
    small = 1e-3 * np.minimum(prior, 1.0) + 1e-7
    _, up = lines.log_density((mode + small)[None])
    _, down = lines.log_density((mode - small)[None])
    curvature = np.maximum((down - up)[0] / (2 * small), lines.precision)
    scale = 1 / np.sqrt(curvature)
    reach = np.arcsinh(2 * width / scale)
    return mode + scale * np.sinh(np.linspace(-1, 1, GRID)[:, None] * reach)


def _inverse(u: np.ndarray, shift: np.ndarray, log_g: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """The shift at given normal scores, by cubic interpolation with the exact derivatives."""
    kept = np.isfinite(u) & (np.abs(u) < REACH + 1.5)
    u, shift, log_g = u[kept], shift[kept], log_g[kept]
    rising = np.concatenate([[True], np.diff(u) > 1e-9])
    u, shift, log_g = u[rising], shift[rising], log_g[rising]
    slope = np.exp(np.minimum(-0.5 * u**2 - 0.5 * np.log(2 * np.pi) - log_g, 300))
    i = np.clip(np.searchsorted(u, knots) - 1, 0, len(u) - 2)
    h = u[i + 1] - u[i]
    t = np.clip((knots - u[i]) / h, 0, 1)
    rise = shift[i + 1] - shift[i]
    # Slopes steeper than three times the chord would overshoot.
    a, b = np.minimum(slope[i] * h, 3 * rise), np.minimum(slope[i + 1] * h, 3 * rise)
    return shift[i] + rise * t * t * (3 - 2 * t) + a * t * (1 - t) ** 2 - b * t * t * (1 - t)


def _pieces(value: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Quintic pieces with given values and derivatives at the knots; increasing, or the derivatives are given up."""
    h = 2 * REACH / (KNOTS - 1)
    second = second.copy()
    second[[0, -1]] = 0
    first, second = first * h, second * h**2
    rise = np.diff(value, axis=0)
    coefficients = _quintic(value[:-1], rise, first[:-1], first[1:], second[:-1], second[1:])
    broken = _slope_range(coefficients) <= 0.02 * np.abs(rise).min(0)
    if broken.any():  # smooth derivatives from the values alone, with harmonic means that cannot overshoot
        soft = rise.copy()
        inner = 2 / (1 / soft[1:] + 1 / soft[:-1])
        first = np.concatenate([soft[:1], inner, soft[-1:]])
        zero = np.zeros_like(soft)
        coefficients[:, :, broken] = _quintic(value[:-1], rise, first[:-1], first[1:], zero, zero)[:, :, broken]
    return coefficients


def _quintic(
    value: np.ndarray, rise: np.ndarray, a1: np.ndarray, b1: np.ndarray, a2: np.ndarray, b2: np.ndarray
) -> np.ndarray:
    c3 = 10 * rise - 6 * a1 - 4 * b1 - 1.5 * a2 + 0.5 * b2
    c4 = -15 * rise + 8 * a1 + 7 * b1 + 1.5 * a2 - b2
    c5 = 6 * rise - 3 * a1 - 3 * b1 - 0.5 * a2 + 0.5 * b2
    return np.stack([value, a1, 0.5 * a2, c3, c4, c5], axis=1)


def _slope_range(coefficients: np.ndarray) -> np.ndarray:
    """The smallest derivative of each map on a fine grid."""
    t = np.linspace(0, 1, 17)[:, None, None]
    c = coefficients
    slope = c[:, 1] + t * (2 * c[:, 2] + t * (3 * c[:, 3] + t * (4 * c[:, 4] + t * 5 * c[:, 5])))
    return np.asarray(slope.min((0, 1)))
