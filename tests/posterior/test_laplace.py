"""The quick method: the closest normal, the weights that make it exact, and a verdict that knows when they do not."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from noisewise.errors import FitError, ModelError
from noisewise.noisy_counts import Measurement, NoisyCounts
from noisewise.posterior import dense
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.density import Density
from noisewise.posterior.fit import extend, fit
from noisewise.posterior.laplace import Laplace, effective, laplace_draws
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.normal import ROUNDS, closest_normal, normal_at_mode
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.progress import silent
from noisewise.schema import Categorical, Schema
from posterior.small_problems import drawn_problem, problem
from small_release import PRIVACY


def laplace(given, draws=4000, seed=0):
    theta, verdict = laplace_draws(given, Laplace(draws=draws), seed, silent)
    return theta[0], verdict


CASES = {
    "toy": ((2, 2, 2), ((0, 1, 2),), 2000, 12.0),
    "triangle": ((3, 2, 2), ((0, 1), (1, 2), (0, 2)), 5000, 20.0),
    "lost in noise": ((2, 2, 2), ((0, 1, 2),), 100, 60.0),
}


# The normal distribution


class Known(Density):
    """A density that is known: normal, with a ridge of some size across one direction."""

    dimensions = 2

    def __init__(self, bend=0.0):
        self.bend, self.centre, self.precision = bend, np.array([[0.7], [-1.2]]), np.array([[2.0, 0.6], [0.6, 1.5]])

    def __call__(self, points):
        left = points - self.centre
        wave = np.tanh(left[1])
        value = -0.5 * (left * (self.precision @ left)).sum(0) - self.bend * np.logaddexp(left[1], -left[1])
        slope = -self.precision @ left
        slope[1] -= self.bend * wave
        return value, slope


def test_a_normal_density_is_found_exactly():
    target = Known()
    start = normal_at_mode(target, silent)
    found = closest_normal(target, start, ROUNDS, np.random.default_rng(0), silent)
    for normal in (start, found):
        np.testing.assert_allclose(normal.centre, target.centre[:, 0], atol=1e-6)
        np.testing.assert_allclose(normal.precision, target.precision, atol=1e-6)


def test_otherwise_its_precision_is_the_average_curvature():
    """With bend 3 the curvature across is 4.5 at the mode, and less away from it."""
    target = Known(bend=3.0)
    start = normal_at_mode(target, silent)
    assert start.precision[1, 1] == pytest.approx(4.5, abs=1e-3)
    found = closest_normal(target, start, ROUNDS, np.random.default_rng(0), silent)
    draws = np.random.default_rng(1).multivariate_normal(found.centre, np.linalg.inv(found.precision), 200_000)
    curvature = 1.5 + 3 / np.cosh(draws[:, 1] + 1.2) ** 2
    # Eight rounds of 256 draws, half of them averaged: about 3 % of the 3 that varies.
    assert found.precision[1, 1] == pytest.approx(curvature.mean(), abs=0.3)
    assert abs(start.precision[1, 1] - curvature.mean()) > 0.5


@pytest.mark.parametrize("case", CASES)
def test_the_climb_ends_where_the_gradient_is_none(case):
    sizes, marginals, rows, stddev = CASES[case]
    arrays = Arrays.of(drawn_problem(sizes, marginals, rows, stddev)[0])
    density = Density(arrays, monotone_maps(arrays))
    normal = normal_at_mode(density, silent)
    slope = density(normal.centre[:, None])[1][:, 0]
    assert 0.5 * slope @ np.linalg.solve(normal.precision, slope) < 1e-6  # no more can be gained in log density
    assert np.linalg.eigvalsh(normal.precision).min() > 0


# Weights


def test_equal_weights_leave_all_draws_and_one_weight_leaves_one():
    counts = np.random.default_rng(0).normal(size=(5, 2000))
    assert effective(counts, np.full(2000, 1 / 2000)) == pytest.approx(2000)
    weights = np.full(2000, 1e-9)
    weights[17] = 1
    assert effective(counts, weights / weights.sum()) < 1.1
    assert effective(np.ones((3, 2000)), np.full(2000, 1 / 2000)) == pytest.approx(2000)


def test_the_effective_number_is_what_repeated_weighting_shows():
    """Draws of N(0, 1.3²) weighted to N(0, 1): the spread of their mean over repeats, against what is said of it."""
    random, said, means = np.random.default_rng(0), [], []
    for _ in range(300):
        draws = random.normal(0, 1.3, 2000)
        log_weights = -0.5 * draws**2 * (1 - 1.3**-2)
        weights = np.exp(log_weights) / np.exp(log_weights).sum()
        means.append(weights @ draws)
        squared = (draws - weights @ draws) ** 2 * weights
        said.append(squared.sum() / (squared * weights).sum())
        assert effective(draws[None], weights) <= said[-1] + 1e-9  # the tails may be known less well
    # The variance of 300 means is known to 8 %; four of those.
    assert np.mean(said) * np.var(means) == pytest.approx(1, abs=0.33)


@pytest.mark.parametrize("case", ["toy", "triangle"])
def test_weighted_draws_have_the_moments_of_the_papers_density(case):
    """A long importance sample of the dense density, from a wide proposal, is the truth."""
    given, _ = drawn_problem(*CASES[case])
    draws, verdict = laplace(given)
    with jax.enable_x64(True):
        data = dense.dense_data(given)
        random = np.random.default_rng(1)
        centre, root = draws.mean(0), 1.3 * np.linalg.cholesky(np.cov(draws.T))
        normals = random.standard_t(7, (40_000, len(centre))) @ np.eye(len(centre))
        log_weights = np.asarray(dense.log_densities(centre + normals @ root.T, given.model, data))
    log_weights = log_weights + 4 * np.log1p(normals**2 / 7).sum(1)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    points = centre + normals @ root.T
    mean = weights @ points
    spread = np.sqrt(weights @ (points - mean) ** 2)
    assert verdict.trusted
    left = min(1 / (weights**2).sum(), verdict.numbers["ess"])
    # Either mean is known to sd/√left, the sd to about as much (more in long tails): five of both together.
    np.testing.assert_allclose((draws.mean(0) - mean) / spread, 0, atol=5 * np.sqrt(2 / left))
    np.testing.assert_allclose(draws.std(0) / spread, 1, atol=5 * np.sqrt(3 / left))


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


def test_a_plateau_is_drawn_as_quadrature_has_it():
    """A count of about zero is explained by every very negative log odds; only the prior ends the plateau."""
    given = problem((2,), ((0,),), [2010, -25], 25.0, 2000)
    mean, stddev = grid_posterior(given, [np.linspace(-60, 5, 8001)])
    draws, verdict = laplace(given)
    assert verdict.trusted
    assert draws.mean(0) == pytest.approx(mean, abs=4 * stddev[0] / 63)
    assert draws.std(0) == pytest.approx(stddev, rel=0.05)


def test_two_counts_lost_in_the_noise_against_quadrature():
    """The draws of the approximation need their weights here: those that are not resampled are off."""
    given = problem((3,), ((0,),), [300, 60, -5], 30.0, 355, prior=3.0)
    mean, stddev = grid_posterior(given, [np.linspace(-12, 4, 321), np.linspace(-14, 4, 361)])
    draws, verdict = laplace(given)
    assert verdict.trusted
    left = min(verdict.numbers["ess"], 4000)
    np.testing.assert_allclose((draws.mean(0) - mean) / stddev, 0, atol=4 / np.sqrt(left))
    np.testing.assert_allclose(draws.std(0) / stddev, 1, atol=4 * np.sqrt(2 / left))


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
    assert verdict.numbers["pareto_k"] < 0.5


# Verdict


def lost() -> Problem:
    """A ring of 40 cells, most of them lost in the noise, under a wide prior."""
    return drawn_problem((5, 4, 5), ((0, 1), (1, 2), (0, 2)), rows=200, stddev=25.0, scale=2.0)[0]


def test_a_good_approximation_is_trusted_and_a_bad_one_says_why():
    good, good_verdict = laplace(drawn_problem(*CASES["toy"])[0], draws=1000)
    bad, bad_verdict = laplace(lost())
    assert good_verdict.trusted
    assert good_verdict.numbers["pareto_k"] < 0.7
    assert good_verdict.numbers["effective_share"] > 0.5
    assert not bad_verdict.trusted
    assert bad_verdict.numbers["pareto_k"] > 0.7
    assert any("Pareto" in reason and "Hmc()" in reason for reason in bad_verdict.reasons)
    assert np.isfinite(good).all()
    # Draws that cannot be weighted are those of the approximation, each once.
    assert bad_verdict.numbers["distinct"] == len(np.unique(bad, axis=0))


def test_too_few_effective_draws_are_said():
    given, _ = drawn_problem(*CASES["triangle"])
    _, verdict = laplace_draws(given, Laplace(proposals=4000), 0, silent)
    judged = [laplace_draws(given, Laplace(proposals=4000), seed, silent)[1] for seed in range(3)]
    assert all(v.trusted == (v.numbers["ess"] >= 400 and v.numbers["pareto_k"] < 0.7) for v in [verdict, *judged])


def test_weighted_draws_can_be_extended():
    first = fit(ward_counts([250, 310, 290, 150], 8.0, 1000), Laplace(), seed=4)
    more = extend(first)
    assert more.theta.shape == (2, 1000, 3)
    np.testing.assert_array_equal(more.theta[0], first.theta[0])
    assert (more.theta[1] != first.theta[0]).any()
    assert more.verdict.trusted
    assert more.verdict.numbers["proposals"] == 2 * first.verdict.numbers["proposals"]
    assert extend(first).theta.tobytes() == more.theta.tobytes()
    doubted = replace(first, verdict=first.verdict.model_copy(update={"trusted": False, "reasons": ("Made up.",)}))
    assert extend(doubted).verdict.reasons == ("Made up.",)


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
    posterior = fit(ward_counts(values, stddev, rows), Laplace())
    assert np.isfinite(posterior.theta).all()
    assert all(np.isfinite(number) for number in posterior.verdict.numbers.values())
    assert np.isfinite([posterior.model.probabilities(theta) for theta in posterior.draws[:50]]).all()


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


def test_a_model_too_large_for_dense_matrices_is_refused():
    with pytest.raises(ModelError, match="dense matrices"):
        fit(ward_counts([1] * 1202, 5.0, 3000), Laplace())


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
    with pytest.raises(FitError, match="proposals=500"):
        Laplace(proposals=500)


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
