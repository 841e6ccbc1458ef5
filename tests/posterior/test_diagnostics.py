"""Every diagnostic against ArviZ, and against what is known by arithmetic."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import genpareto

from noisewise.posterior.diagnostics import ess_bulk, ess_tail, pareto_k, pareto_smoothed, rhat


def autoregressive(chains, draws, quantities, correlation, seed, shift=0.0):
    random = np.random.default_rng(seed)
    noise = random.normal(size=(chains, draws, quantities))
    out = np.empty_like(noise)
    out[:, 0] = noise[:, 0]
    for t in range(1, draws):
        out[:, t] = correlation * out[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return out + shift * np.arange(chains)[:, None, None]


CASES = {
    "independent": autoregressive(4, 500, 6, 0.0, 0),
    "sticky": autoregressive(4, 400, 6, 0.9, 1),
    "very sticky": autoregressive(2, 301, 6, 0.99, 2),
    "alternating": autoregressive(4, 250, 6, -0.7, 3),
    "chains apart": autoregressive(4, 300, 6, 0.3, 4, shift=0.8),
    "one chain": autoregressive(1, 401, 6, 0.5, 5),
    "heavy tails": np.random.default_rng(6).standard_cauchy((4, 333, 6)),
    "many ties": np.rint(autoregressive(4, 200, 6, 0.5, 7)),
    "short": autoregressive(4, 11, 6, 0.2, 8),
    "one scale wider": autoregressive(4, 300, 6, 0.1, 9) * np.array([1, 1, 1, 4])[:, None, None],
}


def by_arviz(name, draws, **settings):
    return np.array([getattr(array_stats, name)(draws[:, :, i], **settings) for i in range(draws.shape[2])])


@pytest.mark.parametrize("case", CASES)
def test_rhat_is_that_of_arviz(case):
    draws = CASES[case]
    if len(draws) == 1:  # ArviZ refuses one chain; its two halves are two chains
        half = draws.shape[1] // 2
        split = np.stack([draws[0, :half], draws[0, -half:]])
        assert (rhat(draws) < 1.1).all()
        assert rhat(draws).shape == (split.shape[2],)
        return
    np.testing.assert_allclose(rhat(draws), by_arviz("rhat", draws), rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_effective_sizes_are_those_of_arviz(case):
    draws = CASES[case]
    np.testing.assert_allclose(ess_bulk(draws), by_arviz("ess", draws, method="bulk"), rtol=1e-8)
    np.testing.assert_allclose(ess_tail(draws), by_arviz("ess", draws, method="tail", prob=(0.05, 0.95)), rtol=1e-8)


def test_the_effective_size_of_an_autoregression_is_known():
    """n(1-ρ)/(1+ρ); the estimate's own spread is about 5 % at this length."""
    draws = autoregressive(4, 20_000, 8, 0.8, 0)
    assert ess_bulk(draws).mean() / (80_000 * 0.2 / 1.8) == pytest.approx(1, abs=0.05)


def test_constants_are_no_failure_and_chains_apart_are():
    draws = np.zeros((4, 50, 2))
    draws[:, :, 1] = np.arange(4)[:, None]
    assert rhat(draws)[0] == 1.0
    assert rhat(draws)[1] > 1.5
    assert ess_bulk(draws)[0] == 200


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("size", [100, 1000, 4001])
def test_pareto_k_is_that_of_arviz(scale, size):
    log_weights = np.random.default_rng(size).standard_t(5, size) * scale
    smoothed, expected = array_stats.psislw(-log_weights, r_eff=1)[:2]
    assert pareto_k(log_weights) == pytest.approx(float(expected), rel=1e-8)
    ours = pareto_smoothed(log_weights)
    np.testing.assert_allclose(ours - ours.max(), np.asarray(smoothed) - np.max(smoothed), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [0.2, 0.6, 1.0])
def test_pareto_k_finds_the_shape_of_a_pareto_tail(shape):
    """Tail of 3√40,000 = 600 weights: standard error (1 + k)/√600 is at most .08; four of them."""
    weights = genpareto.rvs(shape, size=40_000, random_state=1) + 1
    assert pareto_k(np.log(weights)) == pytest.approx(shape, abs=0.3)


def test_weights_that_cannot_be_judged_are_bad():
    assert pareto_k(np.zeros(10)) == np.inf  # too few
    assert pareto_k(np.array([*np.zeros(999), np.nan])) == np.inf
    assert pareto_k(np.array([*np.zeros(999), np.inf])) == np.inf
    assert pareto_k(np.array([*np.zeros(999), 1000.0])) > 2  # one draw carries everything


def test_equal_weights_are_perfect():
    assert pareto_k(np.zeros(1000)) == -np.inf
    assert pareto_k(np.random.default_rng(0).normal(0, 1e-12, 1000)) < 0.7
    np.testing.assert_array_equal(pareto_smoothed(np.full(1000, 3.0)), np.zeros(1000))
