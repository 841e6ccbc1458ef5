"""Spark, in a session and through Spark Connect. All of it is here, because starting Spark takes longest."""

import traceback
from dataclasses import replace

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import absent
from engines.agreement import codes_in, differences
from engines.generated import MARGINALS, SCHEMA, agrees, table
from engines.odd_values import odd_table
from noisewise import Custom, RidgeBootstrap, analyze, glm, means, on_spark, synthesize
from noisewise.confidential.counts import count
from noisewise.errors import DataError, ReleaseError
from noisewise.schema import Schema
from noisewise.synthesis import write_partitions
from small_release import posterior_by_hand
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


@pytest.mark.slow
def test_odd_values_in_a_session(spark, odd_file):
    assert differences(codes_in(f"spark:///::{odd_file}")) == []


@pytest.mark.slow
def test_no_more_rows_of_a_unit_than_declared_in_a_session(spark, file):
    here, there = (count(d, SCHEMA, MARGINALS, "person", 2) for d in (table(), f"spark:///::{file}"))
    assert all((here.tables[m] == there.tables[m]).all() for m in MARGINALS)


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def remote(spark):
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.remote(spark.connect).create()
    yield session
    session.stop()


def test_datasets_written_by_spark_are_those_of_one_machine(spark, remote, tmp_path):
    whole = replace(synthesize(posterior_by_hand(), 2, rows=700, seed=8), partition_rows=300)
    write_partitions(whole, tmp_path / "here")
    for number, session in enumerate((spark.session, remote)):
        stored = on_spark(whole, session).write(tmp_path / str(number))
        assert tree(tmp_path / str(number)) == tree(tmp_path / "here")
        assert stored[1].equals(whole[1])
    frame = spark.session.read.parquet(str(tmp_path / "0"))
    assert {tuple(row) for row in frame.groupBy("dataset").count().collect()} == {(0, 700), (1, 700)}


def test_analyses_mapped_over_datasets_give_what_one_machine_gives(spark, remote):
    whole = synthesize(posterior_by_hand(), 3, rows=2000, seed=8)
    ridge = glm("smoker ~ ward + age", family="binomial", remedy=RidgeBootstrap(resamples=5))
    for session, estimator in ((spark.session, ridge), (remote, means("age")), (remote, Custom(mean_age))):
        there, here = (analyze(datasets, estimator) for datasets in (on_spark(whole, session), whole))
        assert there.params.equals(here.params)
        assert there.bse.equals(here.bse)


def test_our_errors_come_back_from_the_workers_as_they_are(spark):
    with pytest.raises(ReleaseError, match="not there"):
        on_spark(synthesize(posterior_by_hand(), 2, rows=10), spark.session).map(missing)


def missing(table, number):
    raise ReleaseError("not there")


def mean_age(table):
    ages = np.asarray(table["age"])
    return float(ages.mean()), float(ages.var() / len(ages))
