"""The distinguishing game on worst-case neighbours, through our own `measure`, in the form of Gaussian privacy.

Two tables differ in one record, which moves two counts of the marginal by one. The best statistic is the difference of
these two counts. At every threshold it yields a share of true and of false alarms, whose normal quantiles may lie no
further apart than √2/σ, with the σ that the release states. Clopper-Pearson limits at α = 1e-6 on each side.

Measuring a million times would take days. A large marginal holds thousands of pairs of cells with independent noise,
each a game: that the noise is added to the counts, and is the same for both tables, is shown by the first test.
"""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta, norm

from noise_twins import Twin, lattice_draws, too_small_by_root_2
from noisewise import Budget, Schema, Workload, measure
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.schema import Categorical

ALPHA = 1e-6
LEVELS = 300
SCHEMA = Schema(column=tuple(Categorical(name=name, levels=tuple(range(LEVELS))) for name in "xy"))
WORKLOAD = Workload.of(SCHEMA, [["x", "y"]])
BUDGET = Budget(1.2, 1e-6)


def neighbours():
    """Two tables of ten rows; in the second the last row is another one."""
    return tuple(pa.table({"x": [*[0] * 9, last], "y": [*[0] * 9, last]}) for last in (0, 1))


def test_neighbours_differ_by_one_in_two_counts_and_by_nothing_else():
    one, other = (
        measure_with_insecure_noise_for_tests(table, SCHEMA, WORKLOAD, BUDGET, noise=Twin(seed=3))
        for table in neighbours()
    )
    moved = one.measurements[0].values - other.measurements[0].values

    assert sorted(moved[moved != 0].tolist()) == [-1, 1]
    assert one.privacy == other.privacy


def games(wanted, measuring):
    """The difference of two cells with noise, in so many games, and the noise that is stated."""
    found, stddev, exact = [], None, None
    table = neighbours()[0]
    while sum(map(len, found)) < wanted:
        noisy = measuring(table)
        values = noisy.measurements[0].values.astype(np.int64).ravel()
        if exact is None:
            exact = np.zeros_like(values)
            exact[0] = 10
        noise = values - exact
        found.append(noise[0::2] - noise[1::2])
        stddev = noisy.measurements[0].stddev
    return np.concatenate(found)[:wanted], stddev


def claim_is_broken(same, moved, stddev):
    """Whether some threshold tells the two worlds apart better than √2/σ allows, beyond doubt."""
    times, allowed = len(same), math.sqrt(2) / stddev
    for threshold in range(-math.ceil(stddev), math.ceil(stddev) + 3):
        hits, alarms = int((moved >= threshold).sum()), int((same >= threshold).sum())
        if not (0 < hits < times and 0 < alarms < times):
            continue
        surely_hits = beta.ppf(ALPHA, hits, times - hits + 1)
        at_most_alarms = beta.ppf(1 - ALPHA, alarms + 1, times - alarms)
        if norm.ppf(surely_hits) - norm.ppf(at_most_alarms) > allowed:
            return True
    return False


def played(times, measuring):
    """Play the game `times` times in each world."""
    same, stddev = games(times, measuring)
    moved, _ = games(times, measuring)
    return claim_is_broken(same, moved + 2, stddev)  # one count more here, one less there


def real(table):
    return measure(table, SCHEMA, WORKLOAD, BUDGET)


def with_draws(draws, seed=0):
    noise = Twin(draws, seed)
    return lambda table: measure_with_insecure_noise_for_tests(table, SCHEMA, WORKLOAD, BUDGET, noise=noise)


def six_and_a_half_percent_small(generator, stddev, size):
    return lattice_draws(generator, stddev * 0.935, size)


def test_nobody_tells_neighbours_apart_better_than_stated():
    assert not played(20_000, real)
    assert not played(20_000, with_draws(lattice_draws))
    assert played(20_000, with_draws(too_small_by_root_2))


@pytest.mark.slow
def test_a_million_games_in_each_world():
    assert not played(1_000_000, real)
    for seed in range(3):
        assert not played(1_000_000, with_draws(lattice_draws, seed))
        assert played(1_000_000, with_draws(six_and_a_half_percent_small, seed))
