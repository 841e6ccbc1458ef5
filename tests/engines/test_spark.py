"""Spark, in a session and through Spark Connect. All of it is here, because starting Spark takes longest."""

import traceback

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import absent
from engines.agreement import codes_in, differences
from engines.generated import MARGINALS, SCHEMA, agrees, table
from engines.odd_values import odd_table
from noisewise.confidential.counts import count
from noisewise.errors import DataError
from noisewise.schema import Schema
from spark_session import java_is_there, running_spark

pytestmark = [
    pytest.mark.xdist_group("spark"),
    # PySpark leaves sockets to the garbage collector, and pandas warns of how it is called
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
PLAIN = Schema(column=SCHEMA.columns)  # without rules


@pytest.fixture(scope="module")
def spark():
    if not java_is_there():
        absent("Java is not installed: on Debian, the package default-jre-headless.")
    with running_spark() as servers:
        yield servers


@pytest.fixture(scope="module")
def odd_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "odd.parquet"
    pq.write_table(odd_table(), path)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("spark") / "generated.parquet"
    pq.write_table(table(), path)
    return path


def test_counts(spark, file):
    frame = spark.session.read.parquet(str(file))
    before = spark.session.conf.get("spark.sql.session.timeZone")
    assert agrees(count(frame, SCHEMA, MARGINALS), table())
    assert spark.session.conf.get("spark.sql.session.timeZone") == before
    assert spark.session.catalog.listTables() == []


def test_every_way_in(spark, file):
    """A data frame, an Ibis table, a path and a table in the running session, and both through Spark Connect."""
    account = [("account",)]
    expected = count(table(), PLAIN, account).tables["account",]
    frame = spark.session.read.parquet(str(file))
    frame.write.saveAsTable("stored")
    owned = ibis.pyspark.connect(spark.session).table("stored")
    places = [f"{start}::{place}" for start in ("spark:///", f"{spark.connect}/") for place in (file, "default.stored")]
    for source in (frame, owned, *places):
        assert (count(source, PLAIN, account).tables["account",] == expected).all()


def test_units_are_represented_by_the_same_rows_as_elsewhere(spark, file):
    here, there = (count(d, SCHEMA, MARGINALS, "person", 2) for d in (table(), f"{spark.connect}/::{file}"))
    assert here.rows == there.rows
    assert all((here.tables[m] == there.tables[m]).all() for m in MARGINALS)


def test_what_goes_wrong_is_a_code(spark, file, tmp_path):
    bad = table().to_pylist()
    bad[0] |= {"smoker": "ja", "age": "17"}
    pq.write_table(pa.Table.from_pylist(bad, schema=table().schema), tmp_path / "bad.parquet")
    for source, code in (
        (f"spark:///::{tmp_path}/bad.parquet", "rule-broken"),
        (f"{spark.connect}/::{tmp_path}/none.parquet", "table-not-found"),
        (f"{spark.connect}/::nowhere.people", "table-not-found"),
        (spark.connect, "table-not-found"),
    ):
        with pytest.raises(DataError) as caught:
            count(source, SCHEMA, [("account",)])
        assert caught.value.code == code
        assert str(tmp_path) not in "".join(traceback.format_exception(caught.value))


def test_odd_values_through_spark_connect(spark, odd_file):
    assert differences(codes_in(f"{spark.connect}/::{odd_file}")) == []
