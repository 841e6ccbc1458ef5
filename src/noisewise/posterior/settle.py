"""What samplers need before they sample: maps, a metric, a step size, and places to begin.

The maps are made twice: around a quick point estimate, and around what a short pilot run expects. The metric is the
average curvature over points of that run. At the mode alone it is indefinite and bad: cells lost in the noise leave
plateaus. For many dimensions it is diagonal, from the spread of the draws and of their gradients.
"""

from dataclasses import dataclass, replace

import numpy as np

from noisewise.posterior.arrays import Arrays
from noisewise.posterior.chains import Chains, adapted, chains_at, go_on
from noisewise.posterior.density import Density, not_computable
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.problem import Problem
from noisewise.posterior.recentred import around, carried
from noisewise.progress import Progress

CURVATURES = 16
"""Points whose curvature is averaged."""
ROUNDS = {"dense": ((8, 16), (12, 16)), "diagonal": ((8, 12, 16), (12, 16, 16))}
"""Draws of each chain in the pilot's rounds, before and after the maps are made anew. A new metric ends each round."""
MAX_DENSE = 600
"""Dimensions up to which the metric is a matrix."""
SMALLEST = 0.3
"""Least curvature of the metric: a coordinate is never stretched to more than twice its map's scale."""
SHIFT = 1e-4
"""Half the distance of the points whose gradients' difference gives a curvature."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Settled:
    """A problem ready to be sampled."""

    arrays: Arrays
    """The problem laid out."""
    density: Density
    """Its density in v = (u, z)."""
    chains: Chains
    """Where to begin, with metric and step size."""


def settle(problem: Problem, chains: int, acceptance: float, random: np.random.Generator, tell: Progress) -> Settled:
    """Prepare a problem and run the pilot."""
    tell("preparing", 0, 0)
    arrays = Arrays.of(problem)
    density = Density(arrays, monotone_maps(arrays))
    size = density.dimensions
    dense = size <= MAX_DENSE
    root = _metric(density, random.normal(0, 0.8, (size, CURVATURES // 2)), random)
    state = chains_at(density, 0.5 * random.normal(0, 0.8, (size, chains)), root, 0.2 if dense else 0.05)
    if not np.isfinite(state.value).all():
        raise not_computable()
    before, after = ROUNDS["dense" if dense else "diagonal"]
    for number, draws in enumerate(before + after):
        tell("settling", number, len(before + after))
        state, points = _paced(density, state, draws, acceptance, random)
        if number == len(before) - 1:
            old, density = density, around(density, points)
            state = chains_at(density, carried(state.v, old, density), state.root, state.step)
            points = carried(points, old, density)
        state = replace(state, root=_metric(density, points, random))
    state, _ = _paced(density, state, 12, acceptance, random)
    return Settled(arrays=arrays, density=density, chains=state)


def _paced(
    density: Density, state: Chains, draws: int, acceptance: float, random: np.random.Generator
) -> tuple[Chains, np.ndarray]:
    """Some draws, the step size following the acceptance rate in between; the points of the second half."""
    parts = []
    for _ in range(4):
        state, stretch = go_on(density, state, draws // 4, random)
        parts.append(stretch.draws)
        step = adapted(state.step, stretch.acceptance, acceptance)
        state = replace(state, step=float(np.clip(step, 1e-4, 1.2)))
    return state, np.moveaxis(np.concatenate(parts[2:]), 1, 0).reshape(len(state.v), -1)


def _metric(density: Density, points: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Root of a metric that suits some points."""
    if len(points) > MAX_DENSE:
        return _diagonal(points, density(points)[1])
    chosen = random.choice(points.shape[1], min(CURVATURES, points.shape[1]), replace=False)
    return averaged_root(density, points[:, chosen])


def averaged_root(density: Density, v: np.ndarray) -> np.ndarray:
    """Root of the inverse of the average curvature at some points, made positive."""
    size = len(v)
    shift = SHIFT * np.eye(size)
    total, used = np.zeros((size, size)), 0
    for point in v.T:
        up, down = (density(point[:, None] + s)[1] for s in (shift, -shift))
        matrix = (down - up) / (2 * SHIFT)
        if np.isfinite(matrix).all():
            total, used = total + matrix + matrix.T, used + 1
    values, vectors = np.linalg.eigh(total / max(2 * used, 1))
    return np.asarray(vectors / np.sqrt(np.maximum(values, SMALLEST)))


def _diagonal(points: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Scales that make points and gradients equally wide, shrunk towards one."""
    spread, slope = points.std(1), gradients.std(1)
    ratio = np.clip((spread + 1e-3) / (slope + 1e-3), 1e-6, 4.0)
    return np.sqrt(ratio)
