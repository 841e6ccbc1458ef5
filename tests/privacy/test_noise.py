"""The sampler, tested through our own wrapper, with samplers that the same tests must reject; and its guards."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from noise_twins import (
    BROKEN,
    Twin,
    lattice_draws,
    rounded_normal,
    truncated,
    variance_3_percent_large,
)
from noisewise.errors import BudgetError
from noisewise.privacy import noise
from noisewise.privacy.noise import (
    SELF_TEST_ALPHA,
    OpenDPNoise,
    goodness_of_fit,
    require_sound_sampler,
    require_sound_version,
)

ALPHA = 1e-9  # per test: the suite may be run a million times before one false alarm
STDDEVS = [1.0, 2.0, 5.0, 25.0]


def _draws(source, stddev, size):
    return source.gaussian(np.zeros(size, np.int64), stddev, 1, 1 / (2 * stddev**2))


@pytest.mark.parametrize("stddev", STDDEVS)
def test_the_sampler_draws_what_the_accounting_assumes(stddev):
    assert goodness_of_fit(_draws(OpenDPNoise(), stddev, 20_000), stddev) > ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("stddev", STDDEVS)
def test_the_sampler_draws_what_the_accounting_assumes_two_million_times(stddev):
    assert goodness_of_fit(_draws(OpenDPNoise(), stddev, 2_000_000), stddev) > ALPHA


@pytest.mark.parametrize("stddev", STDDEVS)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda f: f.__name__)
def test_the_test_rejects_broken_samplers(broken, stddev):
    for seed in range(3):
        assert goodness_of_fit(_draws(Twin(broken, seed), stddev, 20_000), stddev) < ALPHA
        assert goodness_of_fit(_draws(Twin(lattice_draws, seed), stddev, 20_000), stddev) > ALPHA


def test_the_test_rejects_a_rounded_normal():
    for seed in range(3):
        assert goodness_of_fit(_draws(Twin(rounded_normal, seed), 1.0, 100_000), 1.0) < ALPHA


def test_two_million_draws_reject_a_variance_three_percent_too_large():
    for stddev in (1.0, 5.0):
        assert goodness_of_fit(_draws(Twin(variance_3_percent_large), stddev, 2_000_000), stddev) < ALPHA
        assert goodness_of_fit(_draws(Twin(lattice_draws), stddev, 2_000_000), stddev) > ALPHA


def test_draws_are_independent_from_cell_to_cell():
    """Each pair of neighbouring draws, by sign: 20 000 draws find a dependence of 0.09 at α = 1e-9."""

    def p_value(draws):
        signs = np.sign(draws)
        table = np.array([[np.sum((signs[::2] == a) & (signs[1::2] == b)) for b in (-1, 0, 1)] for a in (-1, 0, 1)])
        expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
        return chi2.sf(float(((table - expected) ** 2 / expected).sum()), 4)

    assert p_value(_draws(OpenDPNoise(), 2.0, 20_000)) > ALPHA
    repeated = lattice_draws(np.random.default_rng(0), 2.0, 20_000)
    repeated[1::2] = np.where(np.random.default_rng(1).random(10_000) < 0.2, repeated[::2], repeated[1::2])
    assert p_value(repeated) < ALPHA


def test_noise_is_never_the_same_twice():
    first, second = (_draws(OpenDPNoise(), 25.0, 1000) for _ in range(2))

    assert not np.array_equal(first, second)


def _choices(source, scores, sensitivity, epsilon, times):
    return np.bincount([source.choose(scores, sensitivity, epsilon) for _ in range(times)], minlength=len(scores))


def _choice_p_value(observed, scores, sensitivity, epsilon):
    weights = np.exp(epsilon * scores / (2 * sensitivity))
    expected = observed.sum() * weights / weights.sum()
    return chi2.sf(float(((observed - expected) ** 2 / expected).sum()), len(scores) - 1)


def test_choices_follow_the_exponential_mechanism():
    scores = np.array([0, 3, 4, 7, 9])
    observed = _choices(OpenDPNoise(), scores, 2, 1.0, 2000)

    assert _choice_p_value(observed, scores, 2, 1.0) > ALPHA
    assert _choice_p_value(_choices(Twin(), scores, 1, 1.0, 2000), scores, 2, 1.0) < ALPHA  # half the sensitivity


def test_the_result_has_the_counts_shape_and_type():
    counts = np.arange(6, dtype=np.int64).reshape(2, 3) * 1000
    noisy = OpenDPNoise().gaussian(counts, 3.0, 2, 1 / 9)

    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - counts).max() < 3 * 14


@pytest.mark.parametrize("stddev", [0.0, -1.0, 0.5, 1e-9, math.nan, math.inf, 1e9])
def test_no_noise_and_absurd_noise_are_refused(stddev):
    with pytest.raises(BudgetError, match="must lie between 1"):
        OpenDPNoise().gaussian(np.array([123456]), stddev, 2, 1e9)


def test_a_cost_above_what_was_set_aside_is_refused():
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        OpenDPNoise().gaussian(np.array([123456]), 10.0, 2, 0.0099)
    for epsilon in (-1.0, 0.0, math.nan, math.inf):
        with pytest.raises(BudgetError, match="positive epsilon"):
            OpenDPNoise().choose(np.array([1, 2]), 2, epsilon)
    OpenDPNoise().gaussian(np.array([123456]), 10.0, 2, 0.01)


@pytest.mark.parametrize(
    "counts",
    [
        np.array([7654321.0]),
        np.array([7654321], np.int32),
        np.array([7654321], np.uint64),
        np.array([2**60 + 7654321]),
        np.array([-(2**63)]),
    ],
)
def test_counts_of_another_type_or_size_are_refused_and_not_quoted(counts):
    with pytest.raises(BudgetError) as caught:
        OpenDPNoise().gaussian(counts, 10.0, 2, 1.0)
    assert "7654321" not in str(caught.value)


def test_what_opendp_says_is_not_passed_on(monkeypatch):
    import opendp.prelude as dp

    def failing(*_, **__):
        raise ValueError("cannot handle count 7654321")

    monkeypatch.setattr(dp.m, "make_gaussian", failing)
    monkeypatch.setattr(noise, "require_sound_sampler", lambda: None)
    with pytest.raises(BudgetError) as caught:
        OpenDPNoise().gaussian(np.array([7654321]), 10.0, 2, 1.0)
    error = caught.value
    while error is not None:
        assert "7654321" not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("version", ["0.14.2", "0.14.3", "0.15.0", "0.16.0", "0.16.9"])
def test_tested_versions_are_accepted(version):
    require_sound_version(version)


@pytest.mark.parametrize("version", ["0.9.2", "0.12.1", "0.14.0", "0.14.1", "0.14", "0.17.0", "1.0.0", "", "0.14.1+x"])
def test_biased_and_untested_versions_are_refused(version):
    with pytest.raises(BudgetError, match="biased"):
        require_sound_version(version)


def test_the_start_up_test_stops_a_biased_sampler(monkeypatch):
    generator = np.random.default_rng(0)
    monkeypatch.setattr(noise, "_gaussian", lambda counts, s, *_: counts + truncated(generator, s, counts.shape))
    require_sound_sampler.cache_clear()
    try:
        with pytest.raises(BudgetError, match="failed its start-up test"):
            OpenDPNoise().gaussian(np.array([1, 2, 3]), 10.0, 2, 1.0)
        assert SELF_TEST_ALPHA == ALPHA
    finally:
        require_sound_sampler.cache_clear()
