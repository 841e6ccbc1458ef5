"""A normal distribution close to the posterior, in the coordinates (u, z) in which it is nearly one.

From the mode and its curvature the fit goes on to the normal distribution whose Kullback-Leibler divergence to the
posterior is least: under it the gradient averages to zero, and its precision is the average curvature. Both are read
off the gradients at draws from the current normal distribution, by linear regression (Stein's identity says that the
slope is the average curvature). At the mode alone, curvature says too little where the posterior ends in a cliff.
"""

from dataclasses import dataclass

import numpy as np

from noisewise.posterior.density import Density, not_computable
from noisewise.progress import Progress

PIECE = 250
"""Points that are computed at once: their tables stay in the processor's cache."""
SHIFT = 1e-4
"""Step of the differences of gradients that give the curvature at the mode."""
NEWTON_STEPS = 60
ROUNDS = 8
"""Rounds of draws and regression."""
SETTLED = 3
"""From this round on, rounds are averaged."""
SMALLEST = 0.1
"""Least precision in any direction; the maps make about 1 of most."""
LONGEST = 2.0
"""Most standard deviations that the centre moves in a round."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Normal:
    """A normal distribution over (u, z)."""

    centre: np.ndarray
    """Its mean."""
    precision: np.ndarray
    """Its precision matrix."""

    def roots(self) -> tuple[np.ndarray, np.ndarray]:
        """Symmetric roots of the covariance and of the precision."""
        values, vectors = np.linalg.eigh(self.precision)
        values = np.maximum(values, SMALLEST)
        return (vectors / np.sqrt(values)) @ vectors.T, (vectors * np.sqrt(values)) @ vectors.T

    def draws(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Some draws, as columns."""
        return np.asarray(self.centre[:, None] + self.roots()[0] @ random.standard_normal((len(self.centre), count)))


def evaluated(density: Density, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log densities and gradients; -inf and 0 where they cannot be computed."""
    parts = [density(points[:, i : i + PIECE]) for i in range(0, points.shape[1], PIECE)]
    value, gradient = np.concatenate([v for v, _ in parts]), np.concatenate([g for _, g in parts], 1)
    good = np.isfinite(value) & np.isfinite(gradient).all(0)
    return np.where(good, value, -np.inf), np.where(good, gradient, 0.0)


def normal_at_mode(density: Density, progress: Progress) -> Normal:
    """Newton's steps from 0, with negative curvature turned round, and the curvature where they end."""
    point = np.zeros(density.dimensions)
    value, slope = (of[..., 0] for of in evaluated(density, point[:, None]))
    if not np.isfinite(value):
        raise not_computable()
    for number in range(NEWTON_STEPS):
        progress("climbing to the mode", number, 0)
        values, vectors = np.linalg.eigh(_curvature(density, point))
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), SMALLEST))
        if 0.5 * slope @ step < 1e-6:
            break
        tried = point[:, None] + step[:, None] * 0.5 ** np.arange(10)
        reached, slopes = evaluated(density, tried)
        best = int(reached.argmax())
        if not reached[best] > value:
            break
        point, value, slope = tried[:, best], reached[best], slopes[:, best]
    values, vectors = np.linalg.eigh(_curvature(density, point))
    return Normal(centre=point, precision=(vectors * np.maximum(values, 0.3)) @ vectors.T)


def closest_normal(
    density: Density, start: Normal, rounds: int, random: np.random.Generator, progress: Progress
) -> Normal:
    """Go on from a normal distribution to the one closest to the posterior."""
    size, normal = density.dimensions, start
    half = max(128, 2 * size)
    for number in range(rounds):
        progress("fitting a normal distribution", number, rounds)
        root, inverse = normal.roots()
        normals = random.standard_normal((size, half))
        normals = np.concatenate([normals, -normals], 1)
        slopes = root @ evaluated(density, normal.centre[:, None] + root @ normals)[1]
        curvature = -np.linalg.solve(normals @ normals.T, normals @ slopes.T)
        values, vectors = np.linalg.eigh(curvature + curvature.T)
        values = np.clip(0.5 * values, 0.25, 16)
        step = vectors @ ((vectors.T @ slopes.mean(1)) / values)
        share = 1.0 if number < SETTLED else max(1 / (number - SETTLED + 2), 0.2)
        step *= share * min(1.0, LONGEST / max(float(np.linalg.norm(step)), 1e-300))
        seen = inverse @ ((vectors * values) @ vectors.T) @ inverse
        normal = Normal(centre=normal.centre + root @ step, precision=(1 - share) * normal.precision + share * seen)
    return normal


def _curvature(density: Density, point: np.ndarray) -> np.ndarray:
    """The negative Hessian by central differences of the gradient."""
    shift = SHIFT * np.eye(len(point))
    slopes = evaluated(density, np.concatenate([point[:, None] - shift, point[:, None] + shift], 1))[1]
    matrix = (slopes[:, : len(point)] - slopes[:, len(point) :]) / (2 * SHIFT)
    return np.asarray(0.5 * (matrix + matrix.T))
