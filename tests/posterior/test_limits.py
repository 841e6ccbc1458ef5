"""What is known without computing: hardly any noise, endless noise, and input that makes no sense."""

import contextlib

import numpy as np
import pytest

from noisewise.errors import FitError
from noisewise.posterior.hmc import Hmc, hmc_draws
from noisewise.posterior.laplace import Laplace, laplace_draws
from noisewise.posterior.nuts import Nuts, nuts_draws
from noisewise.progress import silent
from posterior.small_problems import problem

WORK = {Hmc: hmc_draws, Laplace: laplace_draws, Nuts: nuts_draws}
METHODS = [Laplace(), Hmc(), pytest.param(Nuts(), marks=pytest.mark.slow)]
SHORT = [
    Laplace(proposals=4_000),
    pytest.param(Hmc(max_draws=80), marks=pytest.mark.slow),
    pytest.param(Nuts(max_draws=100), marks=pytest.mark.slow),
]


def drawn(given, method):
    import jax

    with jax.enable_x64(True):
        theta, verdict = WORK[type(method)](given, method, 0, silent)
    return theta.reshape(-1, theta.shape[2]), verdict


def without_noise(counts, shape, prior, random):
    """Moments of the log-linear model's posterior given the counts themselves.

    In the saturated model the likelihood times the volume element dθ is a Dirichlet distribution of the probabilities
    with the counts as its parameters; its draws are weighted by the prior.
    """
    p = np.log(random.dirichlet(counts, 200_000)).reshape(-1, *shape)
    first, second = p[:, 1:, 0] - p[:, :1, 0], p[:, 0, 1:] - p[:, 0, :1]
    both = p[:, 1:, 1:] - p[:, 1:, :1] - p[:, :1, 1:] + p[:, :1, :1]
    theta = np.concatenate([first, second, both.reshape(len(p), -1)], 1)
    weights = np.exp(-0.5 * (theta**2).sum(1) / prior**2)
    weights /= weights.sum()
    mean = weights @ theta
    return mean, np.sqrt(weights @ (theta - mean) ** 2)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_hardly_any_noise_gives_the_log_linear_models_posterior(method):
    counts = np.array([800.0, 1500.0, 1200.0, 2500.0, 900.0, 1100.0])
    given = problem((2, 3), ((0, 1),), counts, 1e-2, 8000, prior=2.0)
    draws, verdict = drawn(given, method)
    mean, spread = without_noise(counts, (2, 3), 2.0, np.random.default_rng(0))
    assert verdict.trusted
    # 400 effective draws or more: the mean is known to sd/20, the sd to 3.5 %; four each. The normal counts' own
    # error in a log odds is about 1/count, a thirtieth of its sd √(2/count).
    np.testing.assert_allclose((draws.mean(0) - mean) / spread, 0, atol=4 / 20 + 1 / 30)
    np.testing.assert_allclose(draws.std(0) / spread, 1, atol=4 * 0.035 + 0.02)


def test_the_comparison_notices_noise():
    counts = np.array([800.0, 1500.0, 1200.0, 2500.0, 900.0, 1100.0])
    draws, _ = drawn(problem((2, 3), ((0, 1),), counts, 30.0, 8000, prior=2.0), Laplace())
    _, spread = without_noise(counts, (2, 3), 2.0, np.random.default_rng(0))
    assert (draws.std(0) / spread > 1.2).all()


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_endless_noise_gives_the_prior(method):
    given = problem((3, 2, 2), ((0, 1), (1, 2)), np.arange(10.0), 1e9, 2000, prior=1.5)
    draws, verdict = drawn(given, method)
    assert verdict.trusted
    np.testing.assert_allclose(draws.mean(0) / 1.5, 0, atol=4 / 20)
    np.testing.assert_allclose(draws.std(0) / 1.5, 1, atol=4 * 0.035)


SHAPES = {
    "tree": ((3, 2, 2), ((0, 1), (1, 2))),
    "triangle": ((3, 2, 2), ((0, 1), (1, 2), (0, 2))),
    "with a level of its own": ((1, 2, 3), ((0, 1), (1, 2))),
}
INPUTS = {
    "all zero": (0.0, 0.0, 5.0, 100),
    "far below zero": (-1e6, 0.0, 5.0, 100),
    "far above the rows": (1e6, 0.0, 5.0, 100),
    "contradictions": (0.0, 1e6, 5.0, 100),
    "noise far above the rows": (0.0, 1e5, 1e5, 100),
    "next to no noise": (25.0, 5.0, 1e-3, 100),
    "no noise that a double can tell": (25.0, 5.0, 1e-12, 100),
    "one row": (0.0, 1.0, 0.5, 1),
}


@pytest.mark.parametrize("method", SHORT, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", INPUTS)
def test_input_that_makes_no_sense_ends_in_finite_draws_or_a_named_error(case, shape, method):
    centre, scale, stddev, rows = INPUTS[case]
    sizes, marginals = SHAPES[shape]
    cells = sum(int(np.prod([sizes[c] for c in marginal])) for marginal in marginals)
    noisy = centre + scale * np.random.default_rng(0).normal(size=cells)
    given = problem(sizes, marginals, np.rint(noisy), stddev, rows)
    if stddev < 1e-6:  # whether a double can tell depends on where the chains are
        with contextlib.suppress(FitError):
            assert np.isfinite(drawn(given, method)[0]).all()
        return
    draws, verdict = drawn(given, method)
    assert np.isfinite(draws).all()
    assert all(np.isfinite(number) for number in verdict.numbers.values())
