"""Noise that is right, and noise that is wrong in the ways published systems got it wrong. Fast, seeded, for tests."""

import math

import numpy as np

from noisewise.privacy.noise import NoiseSource


def lattice_draws(generator: np.random.Generator, stddev: float, size) -> np.ndarray:
    """Draws of N_Z(0, stddev²), by listing its probabilities."""
    support = np.arange(-math.ceil(14 * stddev), math.ceil(14 * stddev) + 1)
    weights = np.exp(-(support.astype(float) ** 2) / (2 * stddev**2))
    return generator.choice(support, size=size, p=weights / weights.sum()).astype(np.int64)


class Twin(NoiseSource):
    """A noise source made from a function of (generator, stddev, size)."""

    def __init__(self, draws=lattice_draws, seed=0):
        self.draws, self.generator = draws, np.random.default_rng(seed)

    def gaussian(self, counts, stddev, squared_distance, rho):
        return counts + self.draws(self.generator, stddev, counts.shape)

    def choose(self, scores, sensitivity, epsilon):
        return int(np.argmax(scores + self.generator.gumbel(scale=2 * sensitivity / epsilon, size=scores.shape)))


class NoNoise(Twin):
    """No noise at all, and the best score: shows what would be measured."""

    def __init__(self):
        super().__init__(lambda generator, stddev, size: np.zeros(size, np.int64))

    def choose(self, scores, sensitivity, epsilon):
        return int(np.argmax(scores))


def variance_3_percent_large(generator, stddev, size):
    return lattice_draws(generator, stddev * math.sqrt(1.03), size)


def too_small_by_root_2(generator, stddev, size):
    """What mixing up substitution and add-or-remove does."""
    return lattice_draws(generator, stddev / math.sqrt(2), size)


def rounded_normal(generator, stddev, size):
    """A continuous normal, rounded: its variance is too large by 1/12."""
    return np.rint(generator.normal(0, stddev, size)).astype(np.int64)


def zero_too_often(generator, stddev, size):
    """A sampler that takes a negative zero for a zero: the bias of sign-and-magnitude sampling."""
    magnitude = np.abs(lattice_draws(generator, stddev, size))
    redrawn = np.abs(lattice_draws(generator, stddev, size))
    sign = generator.integers(0, 2, size) * 2 - 1
    return np.where((magnitude != 0) & (generator.random(size) < 0.05), 0 * redrawn, magnitude * sign)


def truncated(generator, stddev, size):
    """A sampler without tails."""
    return np.clip(lattice_draws(generator, stddev, size), -math.ceil(2 * stddev), math.ceil(2 * stddev))


def always_positive(generator, stddev, size):
    return np.abs(lattice_draws(generator, stddev, size))


BROKEN = [too_small_by_root_2, zero_too_often, truncated, always_positive]
