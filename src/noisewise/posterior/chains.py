"""Hamiltonian Monte Carlo for many chains in step, in NumPy: trajectories of random length, each accepted or not.

All chains take the same number of steps, so that one call of the density serves them all. Points are columns.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from noisewise.posterior.density import Density

DIVERGED = 1000.0
"""A loss of this much log density along a trajectory means that the steps are too long for the place."""
LENGTHS = (1.0, 3.5)
"""Trajectory lengths, in units in which the target is about a standard normal; a quarter turn is 1.6."""
MAX_STEPS = 64
USUAL, CAREFUL, OFTEN = (0.85, 1.15), (0.1, 0.5), 0.05
"""Step sizes of trajectories, relative to the chains' own, and how often careful ones are taken.

Where cells are nearly empty the density bends sharply in a few places. A chain that enters one would reject everything
for hundreds of draws; a short trajectory of small steps leads it out.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """Where all chains are, in v = (u, z), with the metric and step size they go on with."""

    v: np.ndarray
    """One column per chain."""
    value: np.ndarray
    """Log density there."""
    gradient: np.ndarray
    """Its gradient."""
    root: np.ndarray
    """Root of the metric: a matrix, or a vector if it is diagonal."""
    step: float
    """Step size."""


class Stretch(NamedTuple):
    """Some draws of all chains, and what they cost."""

    draws: np.ndarray
    """Points (draws, dimensions, chains)."""
    acceptance: float
    """Mean acceptance rate."""
    divergences: int
    """Trajectories that diverged."""
    evaluations: int
    """Gradients computed, over all chains."""


def chains_at(density: Density, v: np.ndarray, root: np.ndarray, step: float) -> Chains:
    """Chains at some points."""
    value, gradient = density(v)
    return Chains(v=v, value=value, gradient=gradient, root=root, step=step)


def adapted(step: float, acceptance: float, wanted: float) -> float:
    """The step size after a look at the acceptance rate: longer if it was above the one wanted, shorter if below."""
    return step * math.exp(float(np.clip(1.5 * (acceptance - wanted), -1.0, 0.4)))


def go_on(density: Density, chains: Chains, draws: int, random: np.random.Generator) -> tuple[Chains, Stretch]:
    """Draw with every chain."""
    v, value, gradient, root = chains.v, chains.value, chains.gradient, chains.root
    points = np.empty((draws, *v.shape))
    accepted, diverged, evaluations = 0.0, 0, 0
    for draw in range(draws):
        step = chains.step * (random.uniform(*CAREFUL) if random.uniform() < OFTEN else random.uniform(*USUAL))
        steps = int(np.clip(np.ceil(random.uniform(*LENGTHS) / chains.step), 1, MAX_STEPS))
        momentum = random.standard_normal(v.shape)
        energy = value - 0.5 * (momentum**2).sum(0)
        at, here, slope = v, value, gradient
        momentum = momentum + 0.5 * step * _pulled(root, slope)
        for number in range(steps):
            at = at + step * _pushed(root, momentum)
            here, slope = density(at)
            momentum = momentum + (step if number < steps - 1 else 0.5 * step) * _pulled(root, slope)
        evaluations += steps * v.shape[1]
        gain = here - 0.5 * (momentum**2).sum(0) - energy
        gain = np.where(np.isfinite(gain), gain, -np.inf)
        diverged += int((gain < -DIVERGED).sum())
        accepted += float(np.exp(np.minimum(gain, 0)).mean())
        moved = np.log(random.uniform(size=gain.shape)) < gain
        v, value, gradient = np.where(moved, at, v), np.where(moved, here, value), np.where(moved, slope, gradient)
        points[draw] = v
    chains = replace(chains, v=v, value=value, gradient=gradient)
    return chains, Stretch(points, accepted / draws, diverged, evaluations)


def _pushed(root: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    return root[:, None] * momentum if root.ndim == 1 else root @ momentum


def _pulled(root: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    return root[:, None] * gradient if root.ndim == 1 else root.T @ gradient
