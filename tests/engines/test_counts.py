"""Counts of the embedded engine, PostgreSQL and others are those of brute force; what does not fit is refused."""

from collections import Counter
from decimal import Decimal

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.generated import MARGINALS, SCHEMA, agrees, broken, table, thinned_agrees
from noisewise.confidential import files, grouping, joining
from noisewise.confidential import source as engine_source
from noisewise.confidential.counts import count
from noisewise.errors import DataError
from noisewise.schema import Boolean, Categorical, Date, Numeric, Rule, Schema

BROKEN = {"smoker": "ja", "age": "17"}


@pytest.mark.parametrize("seed", range(2))
def test_the_embedded_engine(seed):
    data = table(seed=seed)
    assert agrees(count(data, SCHEMA, MARGINALS), data)


@pytest.mark.parametrize("stored", ["frame", "file"])
def test_a_column_of_nothing_but_missing_values_needs_no_type(stored, tmp_path):
    schema = Schema(
        column=(
            Categorical(name="a", levels=("x",), missing="category"),
            Categorical(name="b", levels=(1, 2), missing="category"),
            Numeric(name="c", edges=(0, 1), missing="category"),
            Boolean(name="d", missing="category"),
            Date(name="e", edges=("2020-01-01", "2021-01-01"), missing="category"),
        )
    )
    data = pa.table({name: pa.nulls(3) for name in schema.names})
    pq.write_table(data, tmp_path / "t.parquet")
    exact = count(data if stored == "frame" else tmp_path / "t.parquet", schema, [(name,) for name in schema.names])
    assert all(counts[-1] == 3 and counts.sum() == 3 for counts in exact.tables.values())


def test_files_and_databases(tmp_path):
    data = table()
    pq.write_table(data, tmp_path / "t.parquet")
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.register("data", data).execute("CREATE TABLE t AS FROM data")
    for source in ("t.parquet", "t.duckdb::t"):
        assert agrees(count(str(tmp_path / source), SCHEMA, MARGINALS), data)


@pytest.mark.parametrize("sets", [1, 4])
def test_the_size_of_a_batch_changes_nothing(monkeypatch, sets):
    monkeypatch.setitem(grouping.SETS_PER_SCAN, "duckdb", sets)
    steps, data = [], table()
    assert agrees(count(data, SCHEMA, MARGINALS, progress=lambda *step: steps.append(step)), data)
    assert steps == sorted(steps)
    assert steps[-1] == ("counting", 100, 100)


def test_progress_grows_with_the_rows_that_are_read(monkeypatch, tmp_path):
    """The engine gives every step of its plan some weight, and would be at a tenth when it has read all rows."""
    monkeypatch.setattr(engine_source, "_LOOK_EVERY", 0.005)
    duckdb.sql(f"COPY (SELECT range % 50 AS a, range % 7 AS b, range % 11 AS c FROM range(3_000_000)) "
               f"TO '{tmp_path / 't.parquet'}' (ROW_GROUP_SIZE 100_000)")  # fmt: skip
    schema = Schema(
        column=tuple(Categorical(name=n, levels=tuple(range(k))) for n, k in (("a", 50), ("b", 7), ("c", 11)))
    )
    monkeypatch.setattr(joining, "MOST_CELLS", 1)
    seen = []
    count(str(tmp_path / "t.parquet"), schema, [("a", "b"), ("b", "c"), ("a", "c")],
          progress=lambda what, done, total: seen.append(done))  # fmt: skip
    assert seen == sorted(seen)
    before = seen[: seen.index(100)]
    assert before[-1] >= 60
    assert len(set(before)) >= 5


def test_codes_that_are_held_are_computed_once(monkeypatch):
    """Held or not, the counts are the same; more than the room there is are not held."""
    monkeypatch.setitem(grouping.SETS_PER_SCAN, "duckdb", 1)
    data = table()
    for most in (10**9, 10):
        monkeypatch.setattr(files, "_MOST_HELD", most)
        assert agrees(count(data, SCHEMA, MARGINALS), data)


def test_large_answers_come_in_several_scans(monkeypatch):
    monkeypatch.setattr(grouping, "MAX_ANSWER", 100)
    data = table()
    assert agrees(count(data, SCHEMA, MARGINALS), data)
    sets = [("a", "b"), ("b", "c"), ("d",), ("a",)]
    assert grouping._batches(sets, [10, 10, 1000, 10], 64) == [sets[:2], sets[2:3], sets[3:]]
    assert grouping._batches(sets, [10, 10, 10, 10], 3) == [sets[:2], sets[2:]]
    assert grouping._batches(sets, [1, 1, 1, 1], 3) == [sets[:3], sets[3:]]


def test_an_engine_without_grouping_sets(monkeypatch):
    monkeypatch.delitem(grouping.SETS_PER_SCAN, "duckdb")
    data = table()
    assert agrees(count(data, SCHEMA, MARGINALS), data)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # how Ibis asks DuckDB
def test_tables_of_an_owner_stay_open():
    data = table()
    connection = ibis.duckdb.connect()
    connection.con.register("data", data).execute("CREATE TABLE t AS FROM data")
    for owned in (connection.table("t"), ibis.memtable(data)):
        assert agrees(count(owned, SCHEMA, MARGINALS), data)
    assert ("t",) in connection.con.execute("SHOW TABLES").fetchall()


def test_postgres(postgres):
    data = table()
    source = postgres.load("generated", data)
    assert agrees(count(source, SCHEMA, MARGINALS), data)
    for most in (2,):
        here, there = (count(d, SCHEMA, MARGINALS, "person", most) for d in (data, source))
        assert all((here.tables[m] == there.tables[m]).all() for m in MARGINALS)


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_rows_of_a_unit_than_declared(most):
    data = table()
    exact = count(data, SCHEMA, MARGINALS, "person", most)
    assert max(Counter(data["person"].to_pylist()).values()) > 5
    assert thinned_agrees(exact, data, most)
    shuffled = data.take(np.random.default_rng(1).permutation(len(data)))
    again = count(shuffled, SCHEMA, MARGINALS, "person", most)
    assert all((exact.tables[m] == again.tables[m]).all() for m in MARGINALS)


def test_units_may_be_counted_in_parts(monkeypatch):
    data = table()
    whole = count(data, SCHEMA, MARGINALS, "person", 2)
    monkeypatch.setattr(files, "_ROWS_AT_ONCE", len(data) // 3)
    steps = []
    parts = count(data, SCHEMA, MARGINALS, "person", 2, progress=lambda *step: steps.append(step))
    assert parts.rows == whole.rows
    assert all((parts.tables[m] == whole.tables[m]).all() for m in MARGINALS)
    assert steps == sorted(steps)
    assert len({done for _, done, _ in steps}) >= 4
    with pytest.raises(DataError, match="missing-forbidden"):
        count(changed(data, person=None), SCHEMA, MARGINALS, "person", 2)


def test_choosing_rows_of_units_needs_no_more_memory_than_there_is(monkeypatch, tmp_path):
    """A million rows do not fit in 64 MB at once; in parts they do, and the counts are those of all the memory."""
    duckdb.sql(
        "COPY (SELECT hash(range) % 600_000 AS person, ['x', 'y', 'z'][1 + range % 3] AS a, range % 10 AS b "
        f"FROM range(1_000_000)) TO '{tmp_path / 't.parquet'}'"
    )
    schema = Schema(
        column=(Categorical(name="a", levels=("x", "y", "z")), Categorical(name="b", levels=tuple(range(10))))
    )
    source, engine = str(tmp_path / "t.parquet"), files._engine
    whole = count(source, schema, [("a", "b")], "person", 1)

    def small(*arguments, **settings):
        connection = engine(*arguments, **settings)
        connection.con.execute("SET memory_limit = '64MB'")
        return connection

    monkeypatch.setattr(files, "_engine", small)
    with pytest.raises(DataError, match="source-not-readable"):
        count(source, schema, [("a", "b")], "person", 1)
    monkeypatch.setattr(files, "_ROWS_AT_ONCE", 100_000)
    assert (count(source, schema, [("a", "b")], "person", 1).tables["a", "b"] == whole.tables["a", "b"]).all()


def test_what_is_kept_of_a_unit_depends_on_that_unit_alone():
    """Replacing one unit's rows moves the counts by what that unit has in them, and no other unit's rows."""
    data = table()
    people = Counter(data["person"].to_pylist())
    person, _ = people.most_common(1)[0]
    mine = np.array(data["person"]) == person
    replaced = pa.concat_tables([data.filter(pa.array(~mine)), table(seed=7).slice(0, int(mine.sum())).set_column(
        0, "person", pa.array([person] * int(mine.sum())))])  # fmt: skip
    for most in (1, 3):
        one, other = (count(d, SCHEMA, MARGINALS, "person", most) for d in (data, replaced))
        assert one.rows == other.rows
        assert max(int(abs(one.tables[m] - other.tables[m]).sum()) for m in MARGINALS) <= 2 * most


@pytest.mark.parametrize(
    "ids", [pa.array([str(i % 7) for i in range(50)]), pa.array([float(i % 7) for i in range(50)]),
            pa.array([Decimal(i % 7) for i in range(50)])]
)  # fmt: skip
def test_units_may_be_named_in_several_types(ids):
    data = pa.table({"person": ids, "a": ["x", "y"] * 25})
    schema = Schema(column=(Categorical(name="a", levels=("x", "y")),))
    assert count(data, schema, [("a",)], "person", 2).rows == 14


@pytest.mark.parametrize("ids", [pa.array([True] * 3), pa.array([[1]] * 3)])
def test_units_of_other_types_are_refused(ids):
    schema = Schema(column=(Categorical(name="a", levels=("x",)),))
    with pytest.raises(DataError) as caught:
        count(pa.table({"person": ids, "a": ["x"] * 3}), schema, [("a",)], "person", 2)
    assert (caught.value.code, caught.value.column) == ("type-not-supported", "person")


def changed(data, row=0, **values):
    rows = data.to_pylist()
    rows[row] |= values
    return pa.Table.from_pylist(rows, schema=data.schema)


REFUSALS = [
    (BROKEN, "rule-broken", "smoker × age"),
    ({"age": "CANARY"}, "value-outside-schema", "age"),
    ({"noted": None}, "missing-forbidden", "noted"),
    ({"noted": "2020-02-30"}, "value-outside-schema", "noted"),
    ({"person": None}, "missing-forbidden", "person"),
]


@pytest.mark.parametrize("engine", ["embedded", "postgres"])
def test_what_does_not_fit_is_refused_with_a_code(engine, request):
    for change, code, column in REFUSALS:
        data = changed(table(), **change)
        source = request.getfixturevalue("postgres").load("bad", data) if engine == "postgres" else data
        with pytest.raises(DataError) as caught:
            count(source, SCHEMA, MARGINALS, "person", 1000)
        assert (caught.value.code, caught.value.column) == (code, column)


def test_an_empty_table_is_refused(postgres):
    for source in (table().slice(0, 0), postgres.load("empty", table().slice(0, 0))):
        with pytest.raises(DataError) as caught:
            count(source, SCHEMA, MARGINALS)
        assert caught.value.code == "table-empty"


def test_rules_are_checked_on_columns_that_are_not_measured():
    data = changed(table(), **BROKEN)
    assert broken(data.to_pylist()[0])
    with pytest.raises(DataError, match="rule-broken"):
        count(data, SCHEMA, [("account",)])
    assert count(data, Schema(column=SCHEMA.columns), [("account",)]).rows == len(data)


def test_a_determined_column_is_a_rule_too():
    schema = Schema(
        column=(Categorical(name="city", levels=("Turku", "Oulu")), Categorical(name="region", levels=("S", "N"))),
        rule=(Rule(column="region", by="city", levels={"S": ["Turku"], "N": ["Oulu"]}),),
    )
    good = pa.table({"city": ["Turku", "Oulu"], "region": ["S", "N"]})
    assert count(good, schema, [("city", "region")]).tables["city", "region"].tolist() == [[1, 0], [0, 1]]
    with pytest.raises(DataError, match="rule-broken"):
        count(good.set_column(1, "region", pa.array(["S", "S"])), schema, [("city",)])
