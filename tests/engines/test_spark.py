"""Spark, in a session and through Spark Connect. All of it is here, because starting Spark takes longest."""

import pyarrow.parquet as pq
import pytest

from conftest import absent
from engines.agreement import codes_in, differences
from engines.odd_values import odd_table
from spark_session import java_is_there, running_spark

pytestmark = [
    pytest.mark.xdist_group("spark"),
    # PySpark leaves sockets to the garbage collector, and pandas warns of how it is called
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


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


def test_odd_values_in_a_session(spark, odd_file):
    assert differences(codes_in(spark.session.read.parquet(str(odd_file)))) == []


def test_odd_values_through_spark_connect(spark, odd_file):
    assert differences(codes_in(f"{spark.connect}/::{odd_file}")) == []
