"""Small worlds in which the posterior is exact, so that only the pooling is on trial.

Each gives, for one repeat, the truth and what m synthetic datasets of the original size would yield. Estimates and
their covariances are sufficient here, so that rows need not be written out.
"""

from dataclasses import dataclass

import numpy as np

ROWS = 400
SLOPES = np.array([0.5, -0.3, 0.2])


@dataclass(frozen=True)
class World:
    truth: np.ndarray
    values: np.ndarray
    covariances: np.ndarray


def normal_mean(random, datasets):
    """y ~ N(1, 2²) with the reference prior; each dataset gives mean and s² / n."""
    truth, stddev = 1.0, 2.0
    mean, variance = random.normal(truth, stddev / ROWS**0.5), stddev**2 * random.chisquare(ROWS - 1) / (ROWS - 1)
    variances = variance * (ROWS - 1) / random.chisquare(ROWS - 1, datasets)
    means = random.normal(mean, np.sqrt(variances / ROWS))
    values = random.normal(means, np.sqrt(variances / ROWS))
    squares = variances * random.chisquare(ROWS - 1, datasets) / (ROWS - 1)
    return World(np.array([truth]), values[:, None], (squares / ROWS)[:, None, None])


def noisy_mean(random, datasets):
    """The mean of y ~ N(1, 2²) is published with noise; given its value the posterior of the mean is normal."""
    truth, stddev, noise = 1.0, 2.0, 0.15
    published = random.normal(truth, np.sqrt(stddev**2 / ROWS + noise**2))
    means = random.normal(published, np.sqrt(stddev**2 / ROWS + noise**2), datasets)
    values = random.normal(means, stddev / ROWS**0.5)
    return World(np.array([truth]), values[:, None], np.full((datasets, 1, 1), stddev**2 / ROWS))


def proportion(random, datasets):
    """A yes/no column with probability 0.3 and Jeffreys' prior."""
    truth = 0.3
    yes = random.binomial(ROWS, truth)
    probabilities = random.beta(yes + 0.5, ROWS - yes + 0.5, datasets)
    shares = random.binomial(ROWS, probabilities) / ROWS
    return World(np.array([truth]), shares[:, None], (shares * (1 - shares) / ROWS)[:, None, None])


def regression(random, datasets):
    """Three coefficients of a normal regression on a fixed design, with the reference prior."""
    matrix = np.random.default_rng(99).normal(size=(ROWS, 3))
    matrix[:, 1] += 0.7 * matrix[:, 0]
    inverse = np.linalg.inv(matrix.T @ matrix)
    root, dof = np.linalg.cholesky(inverse), ROWS - 3
    estimate, variance = SLOPES + root @ random.normal(size=3), random.chisquare(dof) / dof
    variances = variance * dof / random.chisquare(dof, datasets)
    shift = np.sqrt(variances)[:, None] * (random.normal(size=(datasets, 3)) @ root.T)
    again = np.sqrt(variances)[:, None] * (random.normal(size=(datasets, 3)) @ root.T)
    scales = variances * random.chisquare(dof, datasets) / dof
    return World(SLOPES, estimate + shift + again, scales[:, None, None] * inverse)


def unequal_noise(random, datasets):
    """Five means, of which the first is published with much more noise than the others."""
    truth, sampling, noise = np.arange(5.0), np.full(5, 0.01), np.array([0.2, 0.001, 0.001, 0.001, 0.001])
    published = random.normal(truth, np.sqrt(sampling + noise))
    means = random.normal(published, np.sqrt(sampling + noise), (datasets, 5))
    values = random.normal(means, np.sqrt(sampling))
    return World(truth, values, np.broadcast_to(np.diag(sampling), (datasets, 5, 5)).copy())


def tables(random, datasets):
    """Tables of 2 × 3 counts, independent in truth, and what m synthetic datasets yield with Jeffreys' prior."""
    truth = np.outer([0.4, 0.6], [0.2, 0.3, 0.5]).ravel()
    counts = random.multinomial(ROWS, truth)
    shares = random.dirichlet(counts + 0.5, datasets)
    return random.multinomial(ROWS, shares).reshape(datasets, 2, 3).astype(float)


def long_noisy_mean(random, datasets, times=100):
    """`noisy_mean` with synthetic datasets of many times the original rows."""
    truth, stddev, noise = 1.0, 2.0, 0.15
    published = random.normal(truth, np.sqrt(stddev**2 / ROWS + noise**2))
    means = random.normal(published, np.sqrt(stddev**2 / ROWS + noise**2), datasets)
    values = random.normal(means, stddev / (times * ROWS) ** 0.5)
    return World(np.array([truth]), values[:, None], np.full((datasets, 1, 1), stddev**2 / ROWS / times))


def missing_mean(random, datasets):
    """Half of the values are missing at random and imputed properly; the others are real. The estimand is the mean."""
    truth, stddev, seen = 1.0, 2.0, ROWS // 2
    mean, square = random.normal(truth, stddev / seen**0.5), stddev**2 * random.chisquare(seen - 1) / (seen - 1)
    imputed, squares = _drawn_again(random, mean, square, seen, datasets)
    variances = (seen - 1) * (square + squares) + seen / 2 * (mean - imputed) ** 2
    return World(np.array([truth]), ((mean + imputed) / 2)[:, None], (variances / (ROWS - 1) / ROWS)[:, None, None])


def partly_replaced_mean(random, datasets):
    """Half of the values are replaced by draws from the posterior of that half; the units are real."""
    truth, stddev, half = 1.0, 2.0, ROWS // 2
    kept, replaced = random.normal(truth, stddev / half**0.5, 2)
    kept_square, square = stddev**2 * random.chisquare(half - 1, 2) / (half - 1)
    drawn, squares = _drawn_again(random, replaced, square, half, datasets)
    variances = (half - 1) * (kept_square + squares) + half / 2 * (kept - drawn) ** 2
    return World(np.array([truth]), ((kept + drawn) / 2)[:, None], (variances / (ROWS - 1) / ROWS)[:, None, None])


def _drawn_again(random, mean, square, rows, datasets):
    """Mean and variance of as many values again, each time from a draw of the normal's posterior."""
    variances = square * (rows - 1) / random.chisquare(rows - 1, datasets)
    means = random.normal(mean, np.sqrt(variances / rows))
    squares = variances * random.chisquare(rows - 1, datasets) / (rows - 1)
    return random.normal(means, np.sqrt(variances / rows)), squares
