"""Every method draws from the paper's density: moments against an importance sample of the dense one, and on Adult.

On Adult a trusted sample of the dense density takes hours. There the fast density, integrated over its latent counts,
is compared with the dense one point by point at points of the posterior, and the methods' moments with each other.
"""

import jax
import numpy as np
import pytest

from noisewise.artifacts import Release
from noisewise.posterior import dense
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.density import Density
from noisewise.posterior.diagnostics import ess_bulk
from noisewise.posterior.hmc import Hmc, hmc_draws
from noisewise.posterior.laplace import Laplace, laplace_draws
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.nuts import Nuts, nuts_draws
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.progress import silent
from posterior.small_problems import drawn_problem, problem
from posterior.test_density import integrated

SHAPES = {
    "toy": ((2, 2, 2), ((0, 1, 2),), 2000, 12.0),
    "race, gender and income in pairs": ((5, 2, 2), ((0, 1), (1, 2), (0, 2)), 5000, 20.0),
}
RESAMPLED = 2_000
WORK = {Hmc: hmc_draws, Laplace: laplace_draws, Nuts: nuts_draws}
METHODS = [Laplace(), Hmc(), pytest.param(Nuts(), marks=pytest.mark.slow)]


def counts_of(given, method, seed=0):
    """Draws, and expected counts as chains × draws × cells; weighted draws in blocks, as if they were chains."""
    with jax.enable_x64(True):
        theta, verdict = WORK[type(method)](given, method, seed, silent)
    assert verdict.trusted, verdict.reasons
    if len(theta) == 1:
        theta = theta.reshape(4, -1, theta.shape[2])
    flat = theta.reshape(-1, theta.shape[2])
    counts = given.rows * np.array([given.model.probabilities(one) for one in flat])
    return flat, counts.reshape(*theta.shape[:2], -1)


def dense_moments(given, draws):
    """Means and standard deviations of the expected counts under the dense density, by importance sampling.

    The proposal is centred and scaled by some draws, and wider; what it misses is in the weights.
    """
    random = np.random.default_rng(1)
    root = 1.2 * np.linalg.cholesky(np.cov(draws.T))
    size, freedom = draws.shape[1], 8
    normals = random.standard_normal((10_000, size)) * np.sqrt(freedom / random.chisquare(freedom, (10_000, 1)))
    points = draws.mean(0) + normals @ root.T
    with jax.enable_x64(True):
        log_weights = np.asarray(dense.log_densities(points, given.model, dense.dense_data(given)))
    log_weights = log_weights + 0.5 * (freedom + size) * np.log1p((normals**2).sum(1) / freedom)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    chosen = points[random.choice(len(points), RESAMPLED, p=weights)]
    counts = given.rows * np.array([given.model.probabilities(point) for point in chosen])
    left = 1 / ((weights**2).sum() + 1 / RESAMPLED)
    return counts.mean(0), counts.std(0), left


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("shape", SHAPES)
def test_moments_are_those_of_the_dense_density(shape, method):
    sizes, marginals, rows, stddev = SHAPES[shape]
    given, _ = drawn_problem(sizes, marginals, rows, stddev, prior=3.0)
    draws, counts = counts_of(given, method)
    mean, spread, left = dense_moments(given, draws)
    assert left > 700
    ess = ess_bulk(counts)
    off = (counts.mean((0, 1)) - mean) / spread / np.sqrt(1 / ess + 1 / left)
    assert np.abs(off).max() < 4.5  # standard errors; 30 cells
    # The spread's relative error is that of the mean over √2 for a normal, and twice that for tails like these.
    np.testing.assert_allclose(counts.std((0, 1)) / spread, 1, atol=4.5 * np.sqrt(2 * (1 / ess.min() + 1 / left)))


def test_less_noise_than_was_told_is_noticed():
    sizes, marginals, rows, stddev = SHAPES["toy"]
    given, _ = drawn_problem(sizes, marginals, rows, stddev, prior=3.0)
    other = problem(sizes, marginals, given.noisy, 2 * stddev, rows, prior=3.0)
    draws, counts = counts_of(given, Laplace())
    _, spread, left = dense_moments(other, draws)
    assert (np.abs(counts.std((0, 1)) / spread - 1) > 4.5 * np.sqrt(2 / 400 + 2 / left)).any()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0])
def test_on_adult_the_density_is_the_dense_one_and_all_methods_agree(epsilon, data_folder, tmp_path, monkeypatch):
    from benchmarks import posterior as benchmark

    monkeypatch.setattr(benchmark, "DATA", data_folder)
    benchmark.measure(tmp_path / "release", epsilon)
    given = Problem.of(Release(tmp_path / "release").noisy_counts(), NormalPrior(), "all")
    found = {type(method).__name__: counts_of(given, method) for method in (Laplace(), Hmc(), Nuts())}

    arrays = Arrays.of(given)
    density = Density(arrays, monotone_maps(arrays))
    theta, free = posterior_points(density, 6)
    ours = np.array([integrated(density, point) for point in free.T])
    with jax.enable_x64(True):
        theirs = np.asarray(dense.log_densities(theta.T, given.model, dense.dense_data(given)))
    differences = ours - theirs
    assert np.ptp(theirs) > 10  # the points are apart
    np.testing.assert_allclose(differences, differences[0], atol=1e-5)  # values of 1e4, condition numbers of 1e3

    first = found["Hmc"][1]
    for name in ("Laplace", "Nuts"):
        other = found[name][1]
        spread = first.std((0, 1))
        error = np.sqrt(1 / ess_bulk(first) + 1 / ess_bulk(other))
        off = (first.mean((0, 1)) - other.mean((0, 1))) / spread / error
        print(name, "largest difference in standard errors", np.abs(off).max().round(2), "of", len(off), "cells")
        assert np.abs(off).max() < 5


def posterior_points(density, number):
    """Parameters and log odds at points around the centre of the posterior and out to three standard deviations."""
    from noisewise.posterior import values

    scale = np.linspace(0.3, 3, number)
    u = np.random.default_rng(0).normal(size=(density.arrays.coordinates, number)) * scale
    free = density.maps(u)[0]
    return values.theta_of(density.arrays, values.values_at(density.arrays, free)), free
