"""What samplers need before they sample: maps, a metric, a step size, and places to begin.

The metric is the average curvature over points of a short pilot run. At the mode alone it is indefinite and bad:
cells lost in the noise leave plateaus. For many dimensions it is diagonal, from the spread of the draws and of
their gradients.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from noisewise.errors import FitError
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.chains import Chains, Stretch, chains_at, go_on
from noisewise.posterior.density import Density
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.problem import Problem
from noisewise.progress import Progress

CURVATURES = 16
"""Points whose curvature is averaged."""
ROUNDS = (8, 12, 16)
"""Draws of each chain in the pilot's rounds; after each the metric is measured again."""
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
    v = random.normal(0, 0.8, (size, CURVATURES))
    root = _curved(density, v) if dense else _diagonal(v[None], density(v)[1][None])
    state = chains_at(density, 0.5 * random.normal(0, 0.8, (size, chains)), root, 0.2 if dense else 0.05)
    if not np.isfinite(state.value).all():
        raise FitError(
            "The posterior density cannot be computed at the start: the noise is too small beside the counts for "
            "double precision, or a noisy count is not a number. Check the noisy counts and their stddev."
        )
    for number, draws in enumerate(ROUNDS if dense else (*ROUNDS, *ROUNDS)):
        tell("settling", number, len(ROUNDS))
        state, stretch = _paced(density, state, draws, acceptance, random)
        points, slopes = stretch.draws[draws // 2 :], stretch.gradients[draws // 2 :]
        if dense:
            flat = np.moveaxis(points, 1, 0).reshape(size, -1)
            root = _curved(
                density, flat[:, random.choice(flat.shape[1], min(CURVATURES, flat.shape[1]), replace=False)]
            )
        else:
            root = _diagonal(points, slopes)
        state = replace(state, root=root)
    state, _ = _paced(density, state, 12, acceptance, random)
    return Settled(arrays=arrays, density=density, chains=state)


def _paced(
    density: Density, state: Chains, draws: int, acceptance: float, random: np.random.Generator
) -> tuple[Chains, Stretch]:
    """Some draws, the step size following the acceptance rate in between."""
    parts = []
    for _ in range(4):
        state, stretch = go_on(density, state, draws // 4, random)
        parts.append(stretch)
        change = math.exp(float(np.clip(1.5 * (stretch.acceptance - acceptance), -1.0, 0.4)))
        state = replace(state, step=float(np.clip(state.step * change, 1e-4, 1.2)))
    return state, Stretch(
        np.concatenate([s.draws for s in parts]), np.concatenate([s.gradients for s in parts]), 0.0, 0, 0
    )


def _curved(density: Density, v: np.ndarray) -> np.ndarray:
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


def _diagonal(draws: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Scales that make draws and gradients equally wide, shrunk towards one."""
    spread, slope = draws.std((0, 2)), gradients.std((0, 2))
    ratio = np.clip((spread + 1e-3) / (slope + 1e-3), 1e-6, 4.0)
    return np.sqrt(ratio)
