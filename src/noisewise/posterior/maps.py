"""One monotone map per coordinate, from a standard normal to a log odds as the posterior would have it.

For each coordinate the posterior is approximated along its own line, the others held at a point estimate: a noisy count
whose expectation moves with the log odds, times the prior along the line. The map turns a standard normal into a
draw from that. Where a count is large this is a change of scale; where it is lost in the noise it straightens a plateau
that ends in a cliff. It only has to be close: what it leaves is the sampler's, and the target stays exact.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from noisewise.posterior.arrays import Arrays, Centre
from noisewise.posterior.lines import Lines, lines_through

Points = Float[np.ndarray, "coordinates points"]

REACH = 6.0
"""The maps are linear beyond this many standard deviations."""
KNOTS = 97
"""Knots of each map, evenly spaced between the ends."""
GRID = 1200
"""Points of the quadrature behind each map."""
HALVINGS = 48
"""Bisections of an inverse."""
WIDEST = 12.0
"""How many standard deviations of the prior the quadrature reaches."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Maps:
    """Piecewise polynomials of degree five, twice continuously differentiable and increasing."""

    coefficients: Float[np.ndarray, "coordinates pieces 6"]
    """Of each piece, lowest power first, in units of the piece's length."""

    def __call__(self, u: Points) -> tuple[Points, Points, Points]:
        """The log odds, their first and their second derivative."""
        unit = (KNOTS - 1) / (2 * REACH)
        inside = np.clip(u, -REACH, REACH)
        place = (inside + REACH) * unit
        piece = np.minimum(place.astype(np.intp), KNOTS - 2)
        t = place - piece
        piece += np.arange(len(u))[:, None] * (KNOTS - 1)
        c = self._flat.take(piece.reshape(-1), axis=0).T.reshape(6, *u.shape)
        value, slope, bend = c[5].copy(), np.zeros(u.shape), np.zeros(u.shape)
        for power in (4, 3, 2, 1, 0):  # Horner's scheme for the value and both derivatives; `bend` is half of its own
            bend = bend * t + slope
            slope = slope * t + value
            value = value * t + c[power]
        slope *= unit
        return value + slope * (u - inside), slope, np.where(u == inside, 2 * unit**2 * bend, 0.0)

    @cached_property
    def _flat(self) -> Float[np.ndarray, "all 6"]:
        return np.ascontiguousarray(self.coefficients.reshape(-1, 6))

    def inverse(self, odds: Points) -> Points:
        """The u that a map takes to given log odds."""
        low, high = np.full(odds.shape, -REACH), np.full(odds.shape, REACH)
        (least, steep_low, _), (most, steep_high, _) = self(low), self(high)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = self(middle)[0] < odds
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        below = odds < least
        beyond = np.where(below, (odds - least) / steep_low, np.maximum(odds - most, 0) / steep_high)
        return np.asarray(0.5 * (low + high) + beyond)


def monotone_maps(arrays: Arrays, centre: Centre | None = None) -> Maps:
    """The maps to the log odds of a problem, made around a point; without one, around where a fit starts."""
    centre = centre or arrays.centre(arrays.start)
    return maps_along(lines_through(arrays, centre), centre.free)


def maps_along(lines: Lines, at: Float[np.ndarray, " coordinates"]) -> Maps:
    """Maps along some lines; `at` holds the log odds at δ = 0."""
    shift = _grid(lines)
    value, slope = lines.log_density(shift)
    density = np.exp(value - value.max(0))
    bend, step = density * slope, np.diff(shift, axis=0)
    mass = 0.5 * (density[1:] + density[:-1]) * step + (bend[:-1] - bend[1:]) * step**2 / 12
    mass = np.maximum(mass, np.finfo(float).tiny)
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
