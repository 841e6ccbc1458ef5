"""Tables in Spark, counted by the cluster: a data frame of a session, or an address.

    spark:///::database.table           in the session there is, or one that Spark's own configuration describes
    spark://host:7077/::database.table  in a session on that cluster
    sc://host:15002/::database.table    through Spark Connect

Instead of a table a Parquet path may be named, as the cluster sees it. Columns are known by position: names that
differ only in case are one name to Spark.
"""

import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Any

from noisewise.confidential.addresses import split_table
from noisewise.confidential.source import Source
from noisewise.confidential.withheld import withheld
from noisewise.errors import DataError

_ZONE = "spark.sql.session.timeZone"


def is_spark_frame(data: Any) -> bool:
    """Whether this is a data frame of PySpark, of whichever session."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "sparkSession")


def open_spark(address: str) -> Source:
    """Open a table or a Parquet path in a Spark session; the session is closed again if it was opened for this."""
    server, table = split_table(address)
    if not table:
        raise DataError("table-not-found")
    session, mine = withheld(lambda: _session(server), "server-not-reached")
    try:
        frame = withheld(lambda: _frame(session, table), "table-not-found")
        source = open_spark_frame(frame)
    except DataError:
        _stop(session, mine)
        raise

    def close() -> None:
        source.close()
        _stop(session, mine)

    return replace(source, close=close)


def open_spark_frame(frame: Any) -> Source:
    """Open a data frame in its owner's session, which is left as it was found."""
    return withheld(lambda: _viewed(frame), "engine-failed")


def _viewed(frame: Any) -> Source:
    import ibis

    session, names = frame.sparkSession, tuple(frame.columns)
    zone, view = session.conf.get(_ZONE), f"noisewise_{secrets.token_hex(8)}"

    def close() -> None:
        with suppress(Exception):  # the session may be gone
            session.catalog.dropTempView(view)
            session.conf.set(_ZONE, zone)

    try:
        frame.toDF(*(f"c{i}" for i in range(len(names)))).createTempView(view)
        table = ibis.pyspark.connect(session).table(view)
        return Source(table=table, names=names, close=close, instants=instants_of(frame))
    except BaseException:
        close()
        raise


def instants_of(frame: Any) -> frozenset[int]:
    """Which columns hold instants: Spark's TIMESTAMP does, unlike its TIMESTAMP_NTZ, and to Ibis both are the same."""
    kinds = (field.dataType.typeName() for field in frame.schema.fields)
    return frozenset(position for position, kind in enumerate(kinds) if kind == "timestamp")


def _session(server: str) -> tuple[Any, bool]:
    """A session, and whether it was made here."""
    if server.startswith("sc://"):
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        return RemoteSession.builder.remote(server).create(), True
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    master = server.rstrip("/")
    builder = SparkSession.builder.appName("noisewise").config("spark.ui.enabled", "false")
    return (builder if master == "spark:" else builder.master(master)).getOrCreate(), True


def _frame(session: Any, table: str) -> Any:
    is_path = "/" in table or table.endswith(".parquet")
    frame = session.read.parquet(table) if is_path else session.table(table)
    _ = frame.schema  # Spark Connect looks for a table only when something is asked of it
    return frame


def _stop(session: Any, mine: bool) -> None:
    if mine:
        with suppress(Exception):  # a server that is gone needs no farewell
            session.stop()
