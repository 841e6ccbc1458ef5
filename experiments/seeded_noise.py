"""Noise with a seed, for experiments on public tables and for tests: a release must never have it."""

import math

import numpy as np

from noisewise.privacy.noise import NoiseSource


class SeededNoise(NoiseSource):
    """Discrete Gaussian noise from a seeded generator, by inverting its distribution function."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def gaussian(self, counts: np.ndarray, stddev: float, squared_distance: int, rho: float) -> np.ndarray:
        """Add noise; what the neighbours' distance costs is not looked at."""
        reach = math.ceil(12 * stddev)
        support = np.arange(-reach, reach + 1)
        weights = np.exp(-(support**2) / (2 * stddev**2))
        return counts + self.generator.choice(support, size=counts.shape, p=weights / weights.sum())

    def choose(self, scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
        """The index whose score plus Gumbel noise is largest."""
        return int(np.argmax(scores + self.generator.gumbel(scale=2 * sensitivity / epsilon, size=scores.shape)))
