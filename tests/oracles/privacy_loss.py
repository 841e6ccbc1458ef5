"""The privacy loss of noisy counts by definition: list every outcome, compare its two probabilities.

Nothing here knows a formula for the loss. The outcomes of a few cells with discrete Gaussian noise are the points of a
lattice, and δ(ε) is the sum of P - e^ε Q over the outcomes where that is positive.
"""

import math
from itertools import combinations, product

import numpy as np


def lattice_gaussian(stddev: float, shift: int = 0, reach: int | None = None) -> np.ndarray:
    """Probabilities of a discrete Gaussian around `shift`, on -reach … reach."""
    reach = reach or math.ceil(14 * stddev) + abs(shift) + 1
    support = np.arange(-reach, reach + 1) - shift
    weights = np.exp(-(support.astype(float) ** 2) / (2 * stddev**2))
    return weights / weights.sum()


def delta_by_enumeration(epsilon: float, stddevs: tuple[float, ...], shifts: tuple[int, ...]) -> float:
    """δ(ε) of cells with these stddevs when the neighbour's counts differ by these whole numbers."""
    one, other = np.ones(1), np.ones(1)
    for stddev, shift in zip(stddevs, shifts, strict=True):
        reach = math.ceil(14 * stddev) + abs(shift) + 1
        one = np.outer(one, lattice_gaussian(stddev, 0, reach)).reshape(-1)
        other = np.outer(other, lattice_gaussian(stddev, shift, reach)).reshape(-1)
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def delta_of_exponential_mechanism(epsilon: float, cost: float, scores: np.ndarray, others: np.ndarray) -> float:
    """δ(ε) of choosing with probability proportional to e^(cost · score / 2), score sensitivity 1."""

    def chances(values: np.ndarray) -> np.ndarray:
        weights = np.exp(cost * values / 2)
        return weights / weights.sum()

    return float(np.maximum(chances(scores) - math.exp(epsilon) * chances(others), 0).sum())


def records(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every possible record."""
    return list(product(*(range(size) for size in sizes)))


def all_marginals(columns: int) -> list[tuple[int, ...]]:
    """Every non-empty set of columns."""
    return [m for k in range(1, columns + 1) for m in combinations(range(columns), k)]


def marginal_counts(table: list[tuple[int, ...]], sizes: tuple[int, ...], marginal: tuple[int, ...]) -> np.ndarray:
    """The counts of one marginal, row by row."""
    counts = np.zeros([sizes[c] for c in marginal], np.int64)
    for record in table:
        counts[tuple(record[c] for c in marginal)] += 1
    return counts
