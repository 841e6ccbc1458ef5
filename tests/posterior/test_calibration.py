"""Simulation-based calibration: over many invented problems the truth is nowhere special among the posterior's draws.

Parameters come from the prior, counts from the likelihood that the posterior assumes. The rank of a true value among
independent posterior draws is then uniform, whatever the problem. With 99 draws there are 100 ranks, in 20 bins; with
400 problems 20 fall into each, and the sum of squares is χ² with 19 degrees of freedom. That is for one quantity of
each problem. Posteriors that are too narrow or too wide show sooner in all quantities together: the mean square of
their ranks about the middle is one number for each problem, whose mean over problems is 1/12.
"""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from noisewise.model.maxent import MaxEnt
from noisewise.posterior.hmc import Hmc, hmc_draws
from noisewise.privacy.accounting import calibrate
from noisewise.progress import silent
from posterior.small_problems import problem

ROWS, PRIOR, BINS, DRAWS = 1_000, 1.5, 20, 99
CRITICAL = chi2.isf(1e-3, BINS - 1)
CRITICAL_WIDTH = norm.isf(5e-4)


def random_graph(random, rings):
    """Three or four columns of two to four levels; a tree of pairs, or often with one more that closes a ring."""
    columns = int(random.integers(3, 5))
    sizes = tuple(int(k) for k in random.integers(2, 5, columns))
    marginals = [(int(random.integers(0, i)), i) for i in range(1, columns)]
    if rings and random.random() < 0.5:
        missing = [(a, b) for b in range(columns) for a in range(b) if (a, b) not in marginals]
        marginals.append(missing[int(random.integers(len(missing)))])
    return sizes, tuple(marginals)


def ranks_of(seed, understate=1.0):
    """Ranks of all parameters and expected counts in one invented problem; None if not trusted.

    The first three are a random parameter's and two random counts'. Leaving problems out by what their noisy counts
    are like leaves ranks uniform.
    """
    random = np.random.default_rng([20, seed])
    epsilon = (0.1, 1.0, 10.0)[seed % 3]
    # Rings that are measured almost without noise are beyond the samplers, and their verdict says so.
    sizes, marginals = random_graph(random, rings=epsilon < 10)
    model = MaxEnt.of(sizes, marginals)
    stddev = calibrate(epsilon, ROWS**-2.0, [1.0] * len(marginals))[0]
    theta = random.normal(0, PRIOR, model.parameters)
    covariance = ROWS * model.covariance(theta) + stddev**2 * np.eye(model.cells)
    noisy = random.multivariate_normal(ROWS * model.probabilities(theta), covariance, method="cholesky")
    given = problem(sizes, marginals, noisy, understate * stddev, ROWS, prior=PRIOR)
    draws, verdict = hmc_draws(given, Hmc(), seed, silent)
    if not verdict.trusted and understate == 1:
        return None
    return ranks_among(draws, model, theta, random)


def ranks_among(draws, model, theta, random):
    """Ranks of the truth among draws: of a random parameter and two random counts, then of all."""
    flat = draws.reshape(-1, model.parameters)
    chosen = flat[np.linspace(0, len(flat) - 1, DRAWS).round().astype(int)]
    drawn = np.array([[*d, *model.probabilities(d)] for d in chosen])
    ranks = (drawn < [*theta, *model.probabilities(theta)]).sum(0)
    picked = [random.integers(model.parameters), *(model.parameters + random.integers(model.cells, size=2))]
    return np.concatenate([ranks[picked], ranks])


def statistics(ranks):
    """χ² of each quantity's ranks."""
    expected = len(ranks) / BINS
    counts = [np.bincount(column * BINS // (DRAWS + 1), minlength=BINS) for column in ranks.T]
    return np.array([((count - expected) ** 2 / expected).sum() for count in counts])


def width(problems):
    """How far the mean square about the middle is from 1/12, in standard errors over problems; below 0 if too wide."""
    of_each = np.array([np.mean(((ranks[3:] + 0.5) / (DRAWS + 1) - 0.5) ** 2) for ranks in problems])
    expected = (1 - (DRAWS + 1) ** -2.0) / 12
    return float((of_each.mean() - expected) / (of_each.std(ddof=1) / np.sqrt(len(of_each))))


def uniform(problems):
    """Whether no statistic speaks against uniform ranks."""
    first = np.array([ranks[:3] for ranks in problems])
    return bool((statistics(first) < CRITICAL).all() and abs(width(problems)) < CRITICAL_WIDTH)


def check(ranks_of_problem, understated):
    """Ranks of 400 problems are uniform, and those of the twin that is told less noise are not."""
    good = [ranks for seed in range(400) if (ranks := ranks_of_problem(seed)) is not None]
    broken = [ranks_of_problem(seed, understated) for seed in range(400)]
    for name, problems in (("good", good), ("broken", broken)):
        told = statistics(np.array([ranks[:3] for ranks in problems])).round(1)
        print(name, len(problems), "χ²", told, "width", round(width(problems), 1))
    assert len(good) >= 390
    assert uniform(good)
    assert width(broken) > CRITICAL_WIDTH


@pytest.mark.slow
def test_ranks_are_uniform_and_understated_noise_is_found():
    # The broken twin is told that the noise is 30 % smaller than it is.
    check(ranks_of, 0.7)


def test_a_few_problems_run_and_the_statistic_rejects_what_it_should():
    problems = [ranks_of(seed) for seed in range(6)]
    assert all(((ranks >= 0) & (ranks <= DRAWS)).all() for ranks in problems)
    random = np.random.default_rng(0)
    assert uniform(random.integers(0, DRAWS + 1, (400, 10)))
    narrow = np.rint(random.beta(0.7, 0.7, (400, 10)) * DRAWS).astype(int)  # truths too often at the ends
    assert statistics(narrow).max() > CRITICAL
    assert width(narrow) > CRITICAL_WIDTH
