"""Samplers: moments against quadrature and against the paper's density, limits, verdicts, interruption."""

import numpy as np
import pytest

from noisewise.errors import FitError
from noisewise.posterior import fit as fitting
from noisewise.posterior import laplace
from noisewise.posterior.fit import extend, fit
from noisewise.posterior.hmc import Hmc, hmc_draws
from noisewise.posterior.nuts import Nuts, nuts_draws
from noisewise.progress import silent
from posterior.small_problems import drawn_problem, problem
from posterior.test_laplace import grid_posterior, ward_counts
from small_release import small_counts

METHODS = {"hmc": (Hmc(), hmc_draws), "nuts": (Nuts(), nuts_draws)}


def drawn(given, method="hmc", seed=0):
    import jax

    settings, work = METHODS[method]
    with jax.enable_x64(True):
        theta, verdict = work(given, settings, seed, silent)
    return theta.reshape(-1, theta.shape[-1]), verdict


QUADRATURE = {
    "a large count": ((2,), ((0,),), [690, 1320], 8.0, [np.linspace(0.2, 1.1, 4001)]),
    "a plateau": ((2,), ((0,),), [2010, -25], 25.0, [np.linspace(-60, 5, 8001)]),
    "nothing known": ((2,), ((0,),), [900, -100], 1e5, [np.linspace(-60, 60, 8001)]),
    "two parameters": ((3,), ((0,),), [300, 60, -5], 10.0, [np.linspace(-3.5, -0.8, 121), np.linspace(-60, 0, 481)]),
}


@pytest.mark.parametrize("case", QUADRATURE)
def test_moments_are_those_of_quadrature(case):
    sizes, marginals, noisy, stddev, axes = QUADRATURE[case]
    given = problem(sizes, marginals, noisy, stddev, int(sum(noisy)))
    mean, spread = grid_posterior(given, axes)
    draws, verdict = drawn(given)
    assert verdict.trusted
    # At least 400 effective draws: the mean is known to sd/20, the sd to 3.5 % (more in long tails); four each.
    np.testing.assert_allclose(draws.mean(0), mean, atol=4 * spread.max() / 20)
    np.testing.assert_allclose(draws.std(0), spread, rtol=0.25)


def test_a_wrong_density_is_noticed_by_the_moments():
    sizes, marginals, noisy, _, axes = QUADRATURE["a large count"]
    mean, spread = grid_posterior(problem(sizes, marginals, noisy, 60.0, 2010), axes)
    draws, _ = drawn(problem(sizes, marginals, noisy, 8.0, 2010))
    assert abs(draws.std(0) / spread - 1) > 0.25
    assert mean.shape == (1,)


def test_both_samplers_agree_on_a_tree():
    given, _ = drawn_problem((3, 2, 2), ((0, 1), (1, 2)), rows=1000, stddev=25.0, seed=5)
    first, good = drawn(given, "hmc")
    second, also = drawn(given, "nuts")
    assert good.trusted
    assert also.trusted
    expected = [np.array([given.rows * given.model.probabilities(d) for d in of[::4]]) for of in (first, second)]
    spread = expected[0].std(0)
    # Two means of 400 effective draws differ by sd·√2/20; four of those.
    np.testing.assert_allclose(expected[0].mean(0), expected[1].mean(0), atol=4 * 1.42 / 20 * spread.max())
    np.testing.assert_allclose(expected[0].std(0), expected[1].std(0), rtol=0.3)


def test_fit_chooses_and_says_so():
    posterior = fit(small_counts())
    assert posterior.record.method == "Laplace"
    assert "tried first" in posterior.record.choice
    assert posterior.verdict.trusted
    assert posterior.verdict.numbers["ess"] >= 400


def test_fit_goes_on_to_chains_where_weights_are_wild_and_says_why(monkeypatch):
    monkeypatch.setattr(laplace, "PARETO_LIMIT", -100.0)
    posterior = fit(small_counts())
    assert posterior.record.method == "Hmc"
    assert "Pareto" in posterior.record.choice
    assert posterior.verdict.trusted
    assert posterior.verdict.numbers["rhat"] <= 1.01
    monkeypatch.setattr(fitting, "QUICK_DIMENSIONS", 0)
    assert fit(small_counts()).record.choice == "Hmc was tried first."


def test_the_same_seed_gives_the_same_draws():
    counts = ward_counts([250, 310, 290, 150], 8.0, 1000)
    first, second = fit(counts, Hmc(), seed=4), fit(counts, Hmc(), seed=4)
    assert first.theta.tobytes() == second.theta.tobytes()
    assert fit(counts, Hmc(), seed=5).theta.tobytes() != first.theta.tobytes()


def test_extending_adds_chains_and_judges_all():
    first = fit(ward_counts([250, 310, 290, 150], 8.0, 1000), Hmc(), seed=4)
    more = extend(first)
    kept = min(first.theta.shape[1], more.theta.shape[1])
    np.testing.assert_array_equal(more.theta[: len(first.theta), :kept], first.theta[:, :kept])
    assert len(more.theta) == 2 * len(first.theta)
    assert more.verdict.numbers["ess"] > 1.3 * first.verdict.numbers["ess"] * kept / first.theta.shape[1]
    assert extend(first).theta.tobytes() == more.theta.tobytes()
    assert more.record.extended == 1


def test_an_interruption_keeps_the_draws_and_says_so():
    calls = 0

    def interrupt(what, done, total):
        nonlocal calls
        calls += what.startswith("sampling")
        if calls == 2:
            raise KeyboardInterrupt

    posterior = fit(small_counts(), Hmc(), progress=interrupt)
    assert not posterior.verdict.trusted
    assert any("interrupted" in reason for reason in posterior.verdict.reasons)
    assert posterior.theta.shape[1] == 40


def test_an_interruption_before_any_draw_is_one():
    def interrupt(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(small_counts(), Hmc(), progress=interrupt)


def test_too_few_draws_are_not_trusted():
    posterior = fit(small_counts(), Hmc(max_draws=80))
    assert not posterior.verdict.trusted
    assert posterior.verdict.reasons


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
        ([640, 360], 5.0, 1000),
    ],
)
def test_degenerate_counts_give_a_finite_posterior(values, stddev, rows):
    posterior = fit(ward_counts(values, stddev, rows), Hmc(max_draws=700))
    assert np.isfinite(posterior.theta).all()
    assert all(np.isfinite(number) for number in posterior.verdict.numbers.values())
    assert np.isfinite([posterior.model.probabilities(theta) for theta in posterior.draws[:50]]).all()


@pytest.mark.parametrize("method", [Hmc, Nuts])
@pytest.mark.parametrize("wrong", [{"chains": 1}, {"max_draws": 10}, {"target_acceptance": 1.0}])
def test_settings_are_checked(method, wrong):
    with pytest.raises(FitError, match="must be"):
        method(**wrong)
