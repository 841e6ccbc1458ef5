"""Laplace's approximation: the mode, the draws, the limits, and a verdict that knows when it is wrong."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from noisewise.errors import FitError, ModelError
from noisewise.noisy_counts import Measurement, NoisyCounts
from noisewise.posterior import dense
from noisewise.posterior.fit import fit
from noisewise.posterior.laplace import Laplace, find_mode, laplace_draws
from noisewise.posterior.problem import NormalPrior
from noisewise.progress import silent
from noisewise.schema import Categorical, Schema
from posterior.small_problems import drawn_problem, problem
from small_release import PRIVACY


def laplace(given, draws=4000, seed=0):
    with jax.enable_x64(True):
        theta, verdict = laplace_draws(given, Laplace(draws=draws), seed, silent)
    return theta[0], verdict


def mode_of(given, start):
    data, model = dense.dense_data(given), given.model

    def scoring(theta):
        value, gradient, information = dense.scoring_terms(theta, model, data)
        return float(value), np.asarray(gradient), np.asarray(information)

    return find_mode(start, scoring, lambda theta: np.asarray(dense.hessian(theta, model, data)), silent)


CASES = {
    "toy": ((2, 2, 2), ((0, 1, 2),), 2000, 12.0),
    "triangle": ((3, 2, 2), ((0, 1), (1, 2), (0, 2)), 500, 20.0),
    "lost in noise": ((2, 2, 2), ((0, 1, 2),), 100, 60.0),
}


@pytest.mark.parametrize("case", CASES)
def test_the_mode_is_the_highest_that_a_general_optimiser_finds(case):
    sizes, marginals, rows, stddev = CASES[case]
    given, _ = drawn_problem(sizes, marginals, rows, stddev)
    data, model, random = dense.dense_data(given), given.model, np.random.default_rng(0)
    with jax.enable_x64(True):

        def negative(theta):
            value, gradient, _ = dense.scoring_terms(theta, model, data)
            return -float(value), -np.asarray(gradient)

        mode, gain = mode_of(given, np.zeros(model.parameters))
        starts = [mode, *random.normal(0, 1.5, (3, model.parameters))]
        found = [minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-7}) for start in starts]
        best = min(found, key=lambda result: result.fun)
        assert gain < 1e-8
        # A gain of 1e-8 left is 1e-4 posterior standard deviations; BFGS stops at about the same.
        assert negative(mode)[0] <= best.fun + 1e-6
        curvature = -np.asarray(dense.hessian(mode, model, data))
        assert (mode - best.x) @ curvature @ (mode - best.x) < 1e-4


@pytest.mark.parametrize("distance", [1.0, 5.0])
def test_the_mode_does_not_depend_on_the_start(distance):
    given, _ = drawn_problem(*CASES["toy"])
    with jax.enable_x64(True):
        first, _ = mode_of(given, np.zeros(7))
        for seed in range(4):
            other, _ = mode_of(given, np.random.default_rng(seed).normal(0, distance, 7))
            np.testing.assert_allclose(other, first, atol=1e-4)


# Quadrature


def grid_posterior(given, axes):
    """Mean and standard deviation by brute force over a grid."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    with jax.enable_x64(True):
        log_density = np.asarray(dense.log_densities(points, given.model, dense.dense_data(given)))
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


def test_one_parameter_against_quadrature():
    given = problem((2,), ((0,),), [690, 1320], 8.0, 2000)
    mean, stddev = grid_posterior(given, [np.linspace(0.2, 1.1, 4001)])
    draws, verdict = laplace(given)
    # Monte Carlo: 4,000 draws give the mean to sd/63 and the sd to 1.1 %; four of each. Laplace's own error is O(1/n).
    assert draws.mean(0) == pytest.approx(mean, abs=4 * stddev[0] / 63)
    assert draws.std(0) == pytest.approx(stddev, rel=0.05)
    assert verdict.trusted


def test_two_parameters_against_quadrature():
    given = problem((3,), ((0,),), [300, 500, 1210], 10.0, 2000)
    mean, stddev = grid_posterior(given, [np.linspace(0.1, 0.9, 121), np.linspace(1.0, 1.8, 121)])
    draws, verdict = laplace(given)
    assert draws.mean(0) == pytest.approx(mean, abs=4 * stddev.max() / 63)
    assert draws.std(0) == pytest.approx(stddev, rel=0.05)
    assert verdict.trusted


def test_a_posterior_that_quadrature_shows_to_be_a_plateau_is_not_trusted():
    """A count of about zero is explained by every very negative log odds; only the prior ends the plateau."""
    given = problem((2,), ((0,),), [2010, -25], 25.0, 2000)
    _, stddev = grid_posterior(given, [np.linspace(-50, 5, 8001)])
    draws, verdict = laplace(given)
    assert abs(draws.std() / stddev[0] - 1) > 0.2 or not verdict.trusted
    assert not verdict.trusted


# Limits


def test_without_noise_it_is_the_posterior_of_the_log_linear_model():
    """σ → 0: mode at the log odds of the counts, information that of n multinomial draws."""
    counts = np.array([300.0, 500.0, 400.0, 800.0])
    given = problem((2, 2), ((0, 1),), counts, 1e-2, 2000)
    draws, verdict = laplace(given)
    expected = np.array([np.log(400 / 300), np.log(500 / 300), np.log(800 * 300 / (400 * 500))])
    variance = np.array([1 / 400 + 1 / 300, 1 / 500 + 1 / 300, (1 / counts).sum()])
    # The normal approximation and the prior move the mode by O(1/count) each: 1/300.
    assert draws.mean(0) == pytest.approx(expected, abs=1 / 300 + 4 * np.sqrt(variance.max()) / 63)
    assert draws.std(0) == pytest.approx(np.sqrt(variance), rel=0.05)
    assert verdict.trusted


def test_with_endless_noise_it_is_the_prior():
    given = problem((2, 3), ((0, 1),), np.arange(6.0), 1e9, 2000, prior=2.0)
    draws, verdict = laplace(given)
    assert np.abs(draws.mean(0)).max() < 4 * 2 / 63
    assert draws.std(0) == pytest.approx(np.full(5, 2.0), rel=0.05)
    assert verdict.trusted
    assert verdict.numbers["pareto_k"] < 0.1


# Verdict


def test_a_good_approximation_is_trusted_and_a_bad_one_says_why():
    good, good_verdict = laplace(drawn_problem(*CASES["toy"])[0], draws=1000)
    _, bad_verdict = laplace(problem((2, 2, 2), ((0, 1, 2),), [900, 5, -30, 40, 700, -60, 10, 400], 50.0, 2000))
    assert good_verdict.trusted
    assert good_verdict.numbers["pareto_k"] < 0.7
    assert good_verdict.numbers["effective_share"] > 0.5
    assert not bad_verdict.trusted
    assert bad_verdict.numbers["pareto_k"] > 0.7
    assert any("Pareto" in reason and "lost in the noise" in reason for reason in bad_verdict.reasons)
    assert np.isfinite(good).all()


def test_a_mode_that_was_not_reached_is_said():
    given, _ = drawn_problem(*CASES["toy"])

    def scoring(theta):
        return -float(theta @ theta), -2 * theta, 2e6 * np.eye(len(theta))  # steps a million times too short

    _, gain = find_mode(np.ones(7), scoring, lambda theta: -2e6 * np.eye(7), silent, max_steps=3)
    assert gain < 1e-3  # a promise, as small as the curvature is wrong
    point, gain = find_mode(np.full(7, 1e3), scoring, lambda theta: -2 * np.eye(7), silent, max_steps=0)
    assert gain > 1e3
    assert (point == 1e3).all()
    assert given.model.parameters == 7


# Degenerate input


def ward_counts(values, stddev, rows) -> NoisyCounts:
    """One marginal of two columns with 2 and len(values)/2 levels."""
    levels = tuple(f"level {i}" for i in range(len(values) // 2))
    columns = (Categorical(name="a", levels=("no", "yes")), Categorical(name="b", levels=levels))
    array = np.array(values, np.int64).reshape(2, -1)
    measurement = Measurement(marginal=("a", "b"), values=array, stddev=stddev)
    schema = Schema(name="small", column=columns)
    return NoisyCounts(schema=schema, rows=rows, measurements=(measurement,), privacy=PRIVACY)


@pytest.mark.parametrize(
    ("values", "stddev", "rows"),
    [
        ([0, 0, 0, 0], 5.0, 100),
        ([-1000, -1000, -1000, -1000], 5.0, 100),
        ([-(10**9), 10**9, 0, 0], 5.0, 100),
        ([100, 0, 0, 0], 1e-3, 100),
        ([25, 25, 25, 25], 1e6, 100),
        ([10**8, 10**8, 10**8, 10**8], 25.0, 4 * 10**8),
        ([1, 0, 0, 0], 0.5, 1),
        ([25, 25, 25, 25], 1e-12, 100),
    ],
)
def test_degenerate_counts_give_a_finite_posterior_or_a_named_error(values, stddev, rows):
    try:
        posterior = fit(ward_counts(values, stddev, rows), Laplace())
    except FitError:
        assert stddev < 1e-6  # nothing else may be given up
        return
    assert np.isfinite(posterior.theta).all()
    assert all(np.isfinite(number) for number in posterior.verdict.numbers.values())
    assert np.isfinite([posterior.model.probabilities(theta) for theta in posterior.draws[:50]]).all()


def test_noise_below_double_precision_is_a_named_error():
    with pytest.raises(FitError, match="double precision"):
        fit(ward_counts([25, 25, 25, 25], 1e-12, 100), Laplace())


def test_columns_of_one_level_are_carried_along():
    posterior = fit(ward_counts([640, 360], 5.0, 1000), Laplace())
    assert posterior.theta.shape == (1, 1000, 1)
    assert posterior.verdict.trusted


def test_nothing_to_estimate_is_an_error():
    column = Categorical(name="only", levels=("one",))
    measurement = Measurement(marginal=("only",), values=np.array([100], np.int64), stddev=5.0)
    counts = NoisyCounts(
        schema=Schema(name="small", column=(column,)), rows=100, measurements=(measurement,), privacy=PRIVACY
    )
    with pytest.raises(FitError, match="nothing to estimate"):
        fit(counts)


def test_a_workload_too_large_for_dense_matrices_is_refused():
    with pytest.raises(ModelError, match="dense matrices"):
        fit(ward_counts([1] * 3002, 5.0, 3000), Laplace())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": -1}, "negative"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(FitError, match=message):
        fit(ward_counts([25, 25, 25, 25], 5.0, 100), **settings)
    with pytest.raises(FitError, match="positive"):
        NormalPrior(stddev=0.0)
    with pytest.raises(FitError, match="too few"):
        Laplace(draws=10)


def test_fitting_twice_gives_the_same_posterior():
    counts = ward_counts([250, 310, 290, 150], 8.0, 1000)
    first, second = fit(counts, Laplace(), seed=4), fit(counts, Laplace(), seed=4)
    assert first.theta.tobytes() == second.theta.tobytes()
    assert first.verdict == second.verdict
    assert fit(counts, Laplace(), seed=5).theta.tobytes() != first.theta.tobytes()


def test_the_draws_recover_the_distribution_behind_the_counts():
    given, theta = drawn_problem((2, 2, 2), ((0, 1, 2),), rows=20_000, stddev=5.0)
    draws, _ = laplace(given, draws=1000)
    z = (draws.mean(0) - theta) / draws.std(0)
    assert np.abs(z).max() < 4
