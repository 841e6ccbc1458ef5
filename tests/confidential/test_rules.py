"""Rules end to end: a table that breaks one is refused with a code, and no synthetic row breaks any."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from experiments.seeded_noise import SeededNoise
from noisewise import Budget, Workload, synthesize
from noisewise.confidential.counts import count
from noisewise.errors import DataError
from noisewise.model.maxent import MaxEnt
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.schema import Schema
from small_release import posterior_by_hand

FAMILY = """
name = "family"
[[column]]
name = "age"
type = "numeric"
edges = [0, 15, 30, 65, 100]
integer = true
[[column]]
name = "spouse"
type = "boolean"
missing = "category"
[[column]]
name = "city"
type = "categorical"
levels = ["A", "B", "C"]
[[column]]
name = "region"
type = "categorical"
levels = ["north", "south"]

[[rule]]
impossible = { age = "[0, 15)", spouse = "true" }
[[rule]]
column = "region"
by = "city"
levels = { north = ["A"], south = ["B", "C"] }
"""
SCHEMA = Schema.from_toml(FAMILY)
MARGINALS = [["age", "spouse"], ["spouse", "city"], ["age", "region"]]


def family(rows=2000, seed=4) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    age, city = random.integers(0, 100, rows), random.choice(["A", "B", "C"], rows)
    spouse = np.where(age < 15, False, random.random(rows) < 0.5)
    spouse = [None if u < 0.05 else bool(s) for u, s in zip(random.random(rows), spouse, strict=True)]
    region = np.where(city == "A", "north", "south")
    return pl.DataFrame({"age": age, "spouse": spouse, "city": city, "region": region})


def breaking(table, **values):
    row = table.slice(0, 1).with_columns(**{name: pl.lit(v).cast(table.schema[name]) for name, v in values.items()})
    return pl.concat([table, row])


@pytest.mark.parametrize(
    ("values", "columns"),
    [({"age": 10, "spouse": True}, "age × spouse"), ({"city": "B", "region": "north"}, "city × region")],
)
@pytest.mark.parametrize("marginals", [MARGINALS, [["age", "city"]]])
def test_a_table_that_breaks_a_rule_is_refused_with_a_code(values, columns, marginals):
    wanted = Workload.of(SCHEMA, marginals).marginals
    assert count(family(), SCHEMA, wanted).rows == 2000

    with pytest.raises(DataError) as caught:
        count(breaking(family(), **values), SCHEMA, wanted)
    assert caught.value.code == "rule-broken"
    assert caught.value.column == columns
    assert not any(str(value) in str(caught.value) for value in ("10", "B"))


def test_rules_hold_in_every_synthetic_row_and_cost_nothing():
    workload = Workload.of(SCHEMA, MARGINALS)
    free = Schema.from_toml(FAMILY.partition("[[rule]]")[0])
    counts, unruled = (
        measure_with_insecure_noise_for_tests(family(), schema, workload, Budget(1.0), noise=SeededNoise(3))
        for schema in (SCHEMA, free)
    )
    assert counts.privacy == unruled.privacy

    drawn = synthesize(posterior_by_hand(counts), 5, 5000)
    free_drawn = synthesize(posterior_by_hand(unruled), 5, 5000)
    assert sum(_breaches(table) for table in drawn) == 0
    assert sum(_breaches(table) for table in free_drawn) > 0


def _breaches(table) -> int:
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col("city", "region").cast(pl.String))
    child = (pl.col("age") < 15) & pl.col("spouse").fill_null(False)
    moved = (pl.col("city") == "A") != (pl.col("region") == "north")
    return len(frame.filter(child | moved))


@st.composite
def ruled_tables(draw):
    """Sizes of a few columns, rules between them, and rows of codes."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=2, max_size=4))
    rules = []
    for _ in range(draw(st.integers(1, 2))):
        named = sorted(draw(st.sets(st.integers(0, len(sizes) - 1), min_size=2, max_size=3)))
        rules.append({i: draw(st.lists(st.integers(0, sizes[i] - 1), min_size=1, unique=True)) for i in named})
    rows = draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in sizes)), min_size=1, max_size=12))
    return sizes, rules, rows


def schema_of(sizes, rules) -> Schema:
    columns = [
        {"name": f"c{i}", "type": "categorical", "levels": [str(k) for k in range(n)]} for i, n in enumerate(sizes)
    ]
    named = [{"impossible": {f"c{i}": [str(k) for k in own] for i, own in rule.items()}} for rule in rules]
    return Schema.model_validate({"name": "t", "column": columns, "rule": named})


def breaks(row, rules) -> bool:
    return any(all(row[i] in own for i, own in rule.items()) for rule in rules)


def code_of(function) -> str | None:
    try:
        function()
    except DataError as error:
        return error.code
    return None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(ruled_tables())
def test_a_table_is_refused_exactly_if_some_row_breaks_a_rule(ruled):
    sizes, rules, rows = ruled
    schema = schema_of(sizes, rules)
    table = pl.DataFrame({name: [str(row[i]) for row in rows] for i, name in enumerate(schema.names)})
    code = code_of(lambda: count(table, schema, [schema.names[:1]]))
    assert code == ("rule-broken" if any(breaks(row, rules) for row in rows) else None)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(ruled_tables())
def test_the_model_of_no_marginals_is_uniform_over_the_possible_rows(ruled):
    sizes, rules, _ = ruled
    schema = schema_of(sizes, rules)
    possible = [row for row in product(*map(range, sizes)) if not breaks(row, rules)]
    assume(possible)
    log_partition = MaxEnt.of(schema.sizes, [], schema.impossible).log_conditionals(np.zeros(0))[1]
    assert np.isclose(log_partition, np.log(len(possible)))
