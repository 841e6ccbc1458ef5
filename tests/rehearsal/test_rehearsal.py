"""Invented tables go through what a real one goes through, and their noise is what it says."""

import numpy as np
import pytest

from noisewise.analysis import glm
from noisewise.demo import FAMILY, FORMULA, TRUTH, demo_schema
from noisewise.privacy.noise import goodness_of_fit
from noisewise.rehearsal import FromPosterior, FromSample, Uniform, rehearse, rehearsed_counts
from noisewise.rehearsal.counts import simulated_noise
from noisewise.schema import Schema
from small_release import MARGINALS, SCHEMA, posterior_by_hand


def stream(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("stddev", [1.0, 2.0, 25.0])
def test_simulated_noise_is_the_discrete_gaussian_and_the_twin_of_another_size_is_not(stddev):
    draws = simulated_noise(stddev, (200_000,), stream())

    assert goodness_of_fit(draws, stddev) > 1e-6
    assert goodness_of_fit(draws, 1.03 * stddev) < 1e-6


def test_large_simulated_noise_has_its_size():
    draws = simulated_noise(1e6, (100_000,), stream())

    # The relative standard error of a standard deviation from N draws is 1/√(2N) = 0.22 %; five of them.
    assert draws.dtype == np.int64
    assert abs(draws.std() / 1e6 - 1) < 0.011


def test_without_noise_the_counts_are_those_of_the_rows():
    codes = Uniform(schema=SCHEMA).draw(5_000, stream())

    counts = rehearsed_counts(codes, SCHEMA, MARGINALS, [1e-3] * len(MARGINALS), stream(1))

    for measurement in counts.measurements:
        columns = [SCHEMA.index(name) for name in measurement.marginal]
        for cell in np.ndindex(measurement.values.shape):
            assert measurement.values[cell] == (codes[:, columns] == cell).all(axis=1).sum()


def test_populations_draw_codes_of_the_schema_and_the_same_ones_again():
    sample = Uniform(schema=SCHEMA).draw(50, stream())
    made = posterior_by_hand()
    for population in (Uniform(schema=SCHEMA), FromSample(codes=sample), FromPosterior(posterior=made, number=3)):
        first, second = (population.draw(1_000, stream(7)) for _ in range(2))

        assert first.shape == (1_000, len(SCHEMA.names))
        assert (first == second).all()
        assert (first >= 0).all()
        assert (first < SCHEMA.sizes).all()
        assert population.description


def test_a_rehearsal_gives_intervals_near_the_truth_and_wider_than_without_privacy():
    random = stream(3)
    x = random.integers(0, 2, (60_000, 2))
    chance = 1 / (1 + np.exp(-(TRUTH["x1"] * x[:, 0] + TRUTH["x2"] * x[:, 1])))
    population = FromSample(codes=np.column_stack([x, random.random(60_000) < chance]).astype(int))
    schema = demo_schema()

    done = rehearse(population, schema, [schema.names], [12.0], 2_000, {"toy": glm(FORMULA, FAMILY)}, seed=1)

    pooled, reference = done.pooled["toy"], done.reference["toy"]
    # Five standard errors: a false alarm in two million.
    assert (abs(pooled.params - list(TRUTH.values())) < 5 * pooled.bse).all()
    assert (pooled.bse.to_numpy() > np.sqrt(reference.variances[0])).all()
    assert done.failed == {}


def test_columns_that_are_released_at_random_and_rules_are_rehearsed_too():
    schema = Schema.from_toml("""
        [[column]]
        name = "age"
        type = "numeric"
        edges = [0, 15, 40, 90]
        released_as = "uniform"
        [[column]]
        name = "spouse"
        type = "boolean"
        [[rule]]
        impossible = { age = "[0, 15)", spouse = "true" }
    """)

    done = rehearse(
        Uniform(schema=schema), schema, [("age", "spouse")], [5.0], 3_000, {"m": glm("spouse ~ age", "binomial")}
    )

    assert done.failed == {}
    # Ages of those over 15 do not tell who has a spouse; being a child does. The interval is for that slope.
    assert done.pooled["m"].params["age"] > 0
    assert done.reference["m"].values[0, 1] > 0
