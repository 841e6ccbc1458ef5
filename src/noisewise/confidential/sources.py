"""Where confidential tables come from: files, data frames, servers, clusters, or any Ibis table.

Every source becomes an Ibis table inside an engine, and is counted there by the same code: rows never travel.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from noisewise.confidential.addresses import holds_secret
from noisewise.confidential.files import open_frame, open_path
from noisewise.confidential.postgres import open_postgres
from noisewise.confidential.source import Source
from noisewise.errors import DataError

_SERVERS: dict[str, Callable[[str], Source]] = {
    "postgres": open_postgres,
    "postgresql": open_postgres,
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
        yield Source(table=data, names=tuple(data.columns))
        return
    source = _open_named(str(data)) if isinstance(data, str | Path) else open_frame(data)
    try:
        yield source
    finally:
        source.close()


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
    return _SERVERS[scheme](name)
