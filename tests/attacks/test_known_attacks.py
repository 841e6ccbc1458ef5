"""Attacks that worked on published systems. Each is first shown to work on a twin, then to fail here."""

import numpy as np
import pyarrow as pa
import pytest
from holder import SCHEMA as HOLDERS

from measured import SCHEMA, WORKLOAD, table
from noise_twins import NoNoise, Twin
from noisewise import Budget, Schema, measure
from noisewise.artifacts.promise import count_gaps
from noisewise.errors import BudgetError, DataError, NoisewiseError, SchemaError
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.privacy.noise import OpenDPNoise


def cannot_come_from(outputs, count):
    """Which outputs adding a float to this count can never give: the float that is missing would have more digits."""
    outputs = outputs.astype(float)
    return (count + (outputs - count)) != outputs


def test_the_digits_of_the_noise_tell_nothing():
    """Float noise on a count of 0 leaves digits near 0 that noise on a count of 1 cannot make."""
    twin = 0 + np.random.default_rng(0).normal(0, 25.13, 100_000)
    ours = OpenDPNoise().gaussian(np.zeros(20_000, np.int64), 25.13, 2, 1 / 25.13**2)

    assert cannot_come_from(twin, 1.0).mean() > 0.01
    assert not cannot_come_from(ours, 1).any()
    assert ours.dtype == np.int64


def neighbour(data):
    """The table with its first row changed."""
    first = {name: data[name][0].as_py() for name in data.column_names}
    other = first | {"a": "q" if first["a"] == "p" else "p"}
    return pa.concat_tables([pa.Table.from_pylist([other], schema=data.schema), data.slice(1)])


def difference(measuring):
    one, other = (measuring(data) for data in (table(), neighbour(table())))
    pairs = zip(one.measurements, other.measurements, strict=True)
    return np.concatenate([(a.values - b.values).ravel() for a, b in pairs])


def test_noise_cannot_be_drawn_again_and_subtracted():
    def seeded(data):
        return measure_with_insecure_noise_for_tests(data, SCHEMA, WORKLOAD, Budget(0.1), noise=Twin(seed=7))

    assert sorted(np.unique(difference(seeded))) == [-1, 0, 1]  # the attack: the changed record, exactly
    ours = [difference(lambda data: measure(data, SCHEMA, WORKLOAD, Budget(0.1))) for _ in range(3)]
    assert all(np.abs(moves).max() > 1 for moves in ours)
    np.random.seed(0)  # noqa: NPY002 - what an attacker may set
    first = measure(table(), SCHEMA, WORKLOAD, Budget(0.1)).measurements[0].values
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, measure(table(), SCHEMA, WORKLOAD, Budget(0.1)).measurements[0].values)


def levels_read_off(data):
    """The twin: a schema whose levels are those that occur."""
    columns = [
        {"name": name, "type": "categorical", "levels": sorted(set(data[name].to_pylist()))}
        for name in data.column_names
    ]
    return Schema.model_validate({"column": columns})


def test_a_level_that_only_one_person_has_does_not_show():
    with_rare = table().set_column(0, "a", pa.array(["rare", *table()["a"].to_pylist()[1:]]))

    assert levels_read_off(table()).hash != levels_read_off(with_rare).hash  # the attack: somebody has it
    with pytest.raises(DataError) as caught:  # ours: the schema is what it was, and the value is not quoted
        measure(with_rare, SCHEMA, WORKLOAD, Budget(1.0))
    assert "rare" not in str(caught.value)
    other = Schema.from_toml(SCHEMA.to_toml().replace('"q",\n]', '"q",\n]\nother = "else"', 1))
    noisy = [measure(data, other, WORKLOAD, Budget(1.0)) for data in (table(), with_rare)]
    assert noisy[0].schema.hash == noisy[1].schema.hash
    assert noisy[0].measurements[0].values.shape == noisy[1].measurements[0].values.shape


def test_a_schema_read_off_the_data_is_refused():
    drafted = levels_read_off(table()).model_copy(update={"origin": "data-derived"})

    with pytest.raises(SchemaError, match="data-derived"):
        measure(table(), drafted, WORKLOAD, Budget(1.0))
    assert Schema.from_toml(HOLDERS).origin == "hand-written"


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e6, True])
def test_no_noise_at_all_cannot_be_asked_for(epsilon):
    """σ = 0 gives the counts away: no ε, and no call of the sampler, leads there."""
    with pytest.raises(NoisewiseError):
        measure(table(), SCHEMA, WORKLOAD, Budget(epsilon))


def test_the_largest_budget_there_is_still_draws_noise():
    exact = measure_with_insecure_noise_for_tests(table(), SCHEMA, WORKLOAD, Budget(1.0), noise=NoNoise())
    ours = measure(table(), SCHEMA, WORKLOAD, Budget(1000.0))

    assert min(m.stddev for m in ours.measurements) >= 1.0
    assert any((a.values != b.values).any() for a, b in zip(exact.measurements, ours.measurements, strict=True))
    for stddev in (0.0, -0.0, 1e-300, 0.999):
        with pytest.raises(BudgetError):
            OpenDPNoise().gaussian(np.array([5]), stddev, 2, 1e300)


def test_exact_counts_that_pose_as_noisy_are_noticed():
    wide = [measure_with_insecure_noise_for_tests(
        table(), SCHEMA, type(WORKLOAD).of(SCHEMA, [[name] for name in "abcdefgh"]), Budget(0.02), noise=noise
    ) for noise in (NoNoise(), Twin(seed=1))]  # fmt: skip

    assert count_gaps(wide[0]) != []
    assert count_gaps(wide[1]) == []
