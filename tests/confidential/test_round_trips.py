"""Every kind of column: what is decoded is counted as what it was, and source values as a plain reading has them."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisewise.confidential.codes import rows_of_codes
from noisewise.confidential.counts import count
from noisewise.confidential.sources import opened
from noisewise.schema import Schema
from oracles.level_codes import code_of

KINDS = """
[[column]]
name = "text"
type = "categorical"
levels = ["a", "ä b", "1", ""]
other = "rest"
missing = "category"

[[column]]
name = "folded"
type = "categorical"
levels = ["x", "y"]
fold = { x = ["1", "one"], y = ["2"] }
missing_values = ["?"]
missing = "category"

[[column]]
name = "whole"
type = "categorical"
levels = [3, -1, 9007199254740993]
missing = "category"

[[column]]
name = "truth"
type = "boolean"
true_values = ["yes"]
false_values = ["no"]
missing = "category"

[[column]]
name = "middle"
type = "numeric"
edges = [-10, 0, 2.5, 7, 100]
beyond = "end-bins"
missing = "category"

[[column]]
name = "evenly"
type = "numeric"
edges = [-10, 0, 2.5, 7, 100]
closed = "right"
released_as = "uniform"
missing = "category"

[[column]]
name = "years"
type = "numeric"
edges = [0, 1, 18, 65, 99]
integer = true
released_as = "uniform"
codes = ["N", "-1"]
codes_as = "text"
missing = "category"

[[column]]
name = "day"
type = "date"
first = 2023-11-20
last = 2024-03-10
period = "week"
released_as = "uniform"
beyond = "end-bins"
missing = "category"

[[column]]
name = "month"
type = "date"
edges = [2024-01-01, 2024-02-01, 2024-03-01, 2024-12-31]
missing = "category"

[[column]]
name = "moment"
type = "datetime"
first = 2024-03-30
last = 2024-03-31
period = "hour"
time_zone = "Europe/Helsinki"
released_as = "uniform"
missing = "category"

[[column]]
name = "local"
type = "datetime"
edges = [2024-01-01T00:00:00, 2024-01-01T12:30:00, 2024-01-03T00:00:00]
beyond = "end-bins"
missing = "category"
"""
SCHEMA = Schema.from_toml(KINDS)
RAW = {
    "text": st.sampled_from(["a", "ä b", "1", "", "b", " a", "rest", None]),
    "folded": st.sampled_from(["x", "y", "1", "one", "2", "?", "Y", None]),
    "whole": st.sampled_from([3, -1, 9007199254740993, 9007199254740992, 0, None]),
    "truth": st.sampled_from(["true", "FALSE", "1", "0", "yes", "no", "Yes", " ", None]),
    "middle": st.floats(-20, 120, allow_nan=False) | st.sampled_from([-10.0, 0.0, 2.5, 100.0, float("nan"), None]),
    "evenly": st.floats(-11, 101, allow_nan=False) | st.sampled_from([-10.0, 0.0, 2.5, 100.0, None]),
    "years": st.sampled_from(["0", "1", "17.5", "18", " 65 ", "99", "99.1", "N", "-1", "n", "1e1", "", "nan", None]),
    "day": st.dates(date(2023, 11, 1), date(2024, 4, 1)) | st.none(),
    "month": st.dates(date(2023, 12, 25), date(2025, 1, 10)) | st.none(),
    "moment": st.datetimes(datetime(2024, 3, 29), datetime(2024, 4, 1), timezones=st.just(UTC)) | st.none(),
    "local": st.datetimes(datetime(2023, 12, 31), datetime(2024, 1, 4)) | st.none(),
}
TYPES = {"whole": pa.int64(), "middle": pa.float64(), "evenly": pa.float64(), "day": pa.date32(), "month": pa.date32()}
TYPES |= {"moment": pa.timestamp("us", "UTC"), "local": pa.timestamp("us")}


def coded(table) -> np.ndarray:
    """Level codes of a whole table, as the engine computes them."""
    with opened(table) as source:
        return rows_of_codes(source, SCHEMA.columns)


def random_codes(rows, seed) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, size, rows) for size in SCHEMA.sizes], axis=1)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_what_is_decoded_is_counted_as_what_it_was(seed):
    codes = random_codes(200, seed)
    table = SCHEMA.decode(codes, np.random.default_rng(seed))

    back = coded(table)

    # One hour of 31 March 2024 does not exist in Helsinki: its period is empty, and counts as the one after it.
    moments = SCHEMA.index("moment")
    starts = SCHEMA.column("moment").instants
    empty = [i for i in range(len(starts) - 1) if starts[i] == starts[i + 1]]
    assert empty == [27]
    codes[codes[:, moments] == empty[0], moments] += 1
    for position, name in enumerate(SCHEMA.names):
        assert (back[:, position] == codes[:, position]).all(), name


def test_as_texts_the_decoded_values_are_counted_the_same():
    codes = random_codes(300, 1)
    table = SCHEMA.decode(codes, np.random.default_rng(1)).drop_columns(["moment", "local", "text"])
    as_texts = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
    kept = [SCHEMA.index(name) for name in table.column_names]
    with opened(as_texts) as source:
        found = rows_of_codes(source, [SCHEMA.columns[i] for i in kept])
    assert (found == codes[:, kept]).all()


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.lists(st.fixed_dictionaries(RAW), min_size=1, max_size=25))
def test_source_values_are_counted_as_a_plain_reading_has_them(rows):
    table = pa.table({name: pa.array([row[name] for row in rows], TYPES.get(name, pa.string())) for name in RAW})
    expected = np.array([[code_of(column, row[column.name]) for column in SCHEMA.columns] for row in rows])

    found = coded(table)

    for position, name in enumerate(SCHEMA.names):
        assert found[:, position].tolist() == expected[:, position].tolist(), name


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_counts_are_those_of_counting_by_hand(seed):
    codes = random_codes(150, seed)
    marginals = (("text", "truth"), ("folded", "whole", "years"), ("month",))

    found = count(SCHEMA.decode(codes, np.random.default_rng(seed)), SCHEMA, marginals)

    assert found.rows == 150
    for marginal in marginals:
        by_hand = np.zeros(SCHEMA.shape(marginal), int)
        for row in codes:
            by_hand[tuple(row[SCHEMA.index(name)] for name in marginal)] += 1
        assert (found.tables[marginal] == by_hand).all()


def test_released_numbers_and_moments_lie_in_their_level_and_whole_numbers_stay_whole():
    codes = random_codes(4_000, 2)
    table = SCHEMA.decode(codes, np.random.default_rng(2))
    years = SCHEMA.column("years")
    for value, code in zip(table["years"].to_pylist(), codes[:, SCHEMA.index("years")], strict=True):
        assert value is None or value in years.codes or (value.isdigit() and code == code_of(years, value))
    ages = [int(v) for v, c in zip(table["years"].to_pylist(), codes[:, SCHEMA.index("years")], strict=True) if c == 1]
    assert set(ages) == set(range(1, 18))  # 900 draws: each of 17 is missed once in 10²³
    days = [v for v, c in zip(table["day"].to_pylist(), codes[:, SCHEMA.index("day")], strict=True) if c == 3]
    assert {day - date(2023, 12, 11) for day in days} == {timedelta(days=k) for k in range(7)}


def test_the_oracle_notices_an_edge_on_the_wrong_side():
    right = SCHEMA.column("evenly")
    left = SCHEMA.with_edges({}).column("middle")
    assert [code_of(right, v) for v in (0.0, 2.5, 100.0)] == [0, 1, 3]
    assert [code_of(left, v) for v in (0.0, 2.5, 100.0)] == [1, 2, 3]


def test_a_column_released_at_random_needs_a_stream():
    with pytest.raises(ValueError, match="needs a random stream"):
        SCHEMA.decode(random_codes(3, 0))
