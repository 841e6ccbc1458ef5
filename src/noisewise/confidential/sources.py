"""Where confidential tables come from: files, data frames, servers, clusters, or any Ibis table.

Every source becomes an Ibis table inside an engine, and is counted there by the same code: rows never travel.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from noisewise.confidential.addresses import holds_secret
from noisewise.confidential.files import open_frame, open_path
from noisewise.confidential.postgres import open_postgres
from noisewise.confidential.source import Source
from noisewise.confidential.spark import instants_of, is_spark_frame, open_spark, open_spark_frame
from noisewise.confidential.withheld import withheld
from noisewise.errors import DataError

_SERVERS: dict[str, Callable[[str], Source]] = {
    "postgres": open_postgres,
    "postgresql": open_postgres,
    "sc": open_spark,
    "spark": open_spark,
}
"""How to open an address, by its scheme."""


@contextmanager
def opened(data: Any) -> Iterator[Source]:
    """Open `data` for counting and close it again.

    `data` is a path ("table.csv", "table.parquet", "file.duckdb::table"), an address
    ("postgres://user@host/database::table"), a data frame (pandas, Polars, Arrow), or an Ibis table of any engine,
    which stays the owner's.
    """
    if _is_ibis_table(data):
        yield withheld(lambda: _of_owner(data), "engine-failed")
        return
    if isinstance(data, str | Path):
        source = _open_named(str(data))
    else:
        source = open_spark_frame(data) if is_spark_frame(data) else open_frame(data)
    try:
        yield source
    finally:
        source.close()


def _of_owner(table: Any) -> Source:
    backend = table.get_backend()
    instants = instants_of(backend._session.sql(backend.compile(table))) if backend.name == "pyspark" else frozenset()
    return Source(table=table, names=tuple(table.columns), instants=instants)


def _is_ibis_table(data: Any) -> bool:
    return type(data).__module__.startswith("ibis.") and hasattr(data, "get_backend")


def _open_named(name: str) -> Source:
    scheme, mark, _ = name.partition("://")
    if not mark:
        return open_path(name)
    if scheme not in _SERVERS:
        raise DataError("source-not-supported")
    if holds_secret(name):
        raise DataError("password-in-source")
    if find_spec("psycopg" if scheme.startswith("postgres") else "pyspark") is None:
        raise DataError("library-missing")
    return _SERVERS[scheme](name)
