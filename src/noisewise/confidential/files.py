"""Tables in files and in memory, counted in the embedded engine.

The engine is told to write nothing: no spill files, no extensions, no progress bar. Columns are known by position, so
that case, repeats and odd names in the source cannot mislead SQL. Rows are never dropped to make a file readable.
"""

import csv
import glob
from collections.abc import Callable
from pathlib import Path
from typing import Any

from noisewise.confidential.source import Source
from noisewise.confidential.withheld import withheld
from noisewise.errors import DataError

_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1_000_000
_HELD_TYPE = "INTEGER"
_MOST_HELD = 250_000_000  # numbers of 4 bytes: a gigabyte
_ROWS_AT_ONCE = 4_000_000  # sorting a row takes some hundred bytes


def open_path(address: str) -> Source:
    """Open a file by its path: "table.csv", "table.parquet", "file.duckdb::table"."""
    name, _, table = address.partition("::")
    path = Path(name)
    readers: dict[str, Callable[[Path, str], Source]] = {
        ".csv": _open_csv,
        ".tsv": _open_csv,
        ".parquet": _open_parquet,
        ".duckdb": _open_duckdb,
        ".db": _open_duckdb,
    }
    if path.suffix.lower() not in readers:
        raise DataError("source-not-supported")
    if not path.is_file():
        raise DataError("source-not-found")
    return withheld(lambda: readers[path.suffix.lower()](path, table), "source-not-readable")


def open_frame(data: Any) -> Source:
    """Open a data frame: pandas, Polars, Arrow, or another that narwhals knows."""
    import narwhals as nw

    frame = withheld(lambda: nw.from_native(data), "source-not-supported")
    return withheld(lambda: _register(frame), "source-not-readable")


def _engine(database: Path | str = ":memory:", read_only: bool = False) -> Any:
    import ibis

    connection = ibis.duckdb.connect(
        database,
        read_only=read_only,
        temp_directory="",
        autoinstall_known_extensions=False,
        autoload_known_extensions=False,
    )
    connection.con.execute("SET enable_progress_bar = true")  # so that it can be asked how far it is
    connection.con.execute("SET enable_progress_bar_print = false")
    return connection


def _source(connection: Any, table: Any, names: tuple[str, ...], failure: str = "engine-failed") -> Source:
    def hold(query: str) -> str:
        """Level codes are computed once and kept in memory, if they are not too many."""
        run = connection.con.execute
        columns = len(run(f"DESCRIBE {query}").fetchall())
        rows = run(f"SELECT count(*) FROM ({query}) AS coded").fetchone()[0]
        if rows * columns > _MOST_HELD:
            return query
        run(f"CREATE OR REPLACE TEMP TABLE coded AS SELECT COLUMNS(*)::{_HELD_TYPE} FROM ({query}) AS coded")
        return "SELECT * FROM coded"

    return Source(
        table=table,
        names=names,
        close=connection.disconnect,
        failure=failure,
        hold=hold,
        rows_at_once=_ROWS_AT_ONCE,
    )


def _open_csv(path: Path, _: str) -> Source:
    """Every field is read as text; the dialect is fixed by the header alone, so no record is ever taken for one."""
    header, delimiter = _csv_header(path)
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(header)))
    query = (
        f"SELECT * FROM read_csv({_quoted(path)}, auto_detect = false, header = true, delim = {_text(delimiter)}, "
        f"quote = '\"', escape = '\"', comment = '', compression = 'none', strict_mode = true, null_padding = false, "
        f"ignore_errors = false, hive_partitioning = false, columns = {{{columns}}})"
    )
    return _open_view(query, header)


def _csv_header(path: Path) -> tuple[tuple[str, ...], str]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        first = handle.readline(_LONGEST_HEADER)
    delimiter = max(_DELIMITERS, key=first.count) if path.suffix.lower() != ".tsv" else "\t"
    with path.open(encoding="utf-8-sig", newline="") as handle:
        header = next(
            csv.reader(iter(lambda: handle.readline(_LONGEST_HEADER), ""), delimiter=delimiter, strict=True), []
        )
    if not header:
        raise DataError("source-not-readable")
    return tuple(header), delimiter


def _open_parquet(path: Path, _: str) -> Source:
    import pyarrow.parquet as pq
    from pyarrow.types import is_null

    schema = pq.read_schema(path)
    aliases = ", ".join(f"c{i}" for i in range(len(schema)))
    untyped = ", ".join(f"c{i}::VARCHAR AS c{i}" for i, field in enumerate(schema) if is_null(field.type))
    chosen = f"* REPLACE ({untyped})" if untyped else "*"
    query = f"SELECT {chosen} FROM read_parquet({_quoted(path)}, hive_partitioning = false) AS t({aliases})"
    return _open_view(query, tuple(schema.names))


def _open_view(query: str, names: tuple[str, ...]) -> Source:
    connection = _engine()
    connection.con.execute(f"CREATE TEMP VIEW source AS {query}")
    return _source(connection, connection.table("source"), names, "source-not-readable")


def _open_duckdb(path: Path, table: str) -> Source:
    connection = _engine(path, read_only=True)
    names = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    tables = [name for (name,) in connection.con.execute(names).fetchall()]
    if not table and len(tables) == 1:
        table = tables[0]
    if table not in tables:
        connection.disconnect()
        raise DataError("table-not-found")
    found = connection.table(table)
    return _source(connection, found, tuple(found.columns))


def _register(frame: Any) -> Source:
    import narwhals as nw

    if isinstance(frame, nw.LazyFrame):
        if frame.implementation not in (nw.Implementation.POLARS, nw.Implementation.DUCKDB):
            raise DataError("source-not-supported")
        frame = frame.collect("pyarrow")
    arrow = _with_types(frame.to_arrow())
    names = tuple(arrow.column_names)
    connection = _engine()
    connection.con.register("source", arrow.rename_columns([f"c{i}" for i in range(len(names))]))
    return _source(connection, connection.table("source"), names)


def _with_types(arrow: Any) -> Any:
    """A column of nothing but NULL may have no type: it becomes a column of text."""
    import pyarrow as pa

    fields = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in arrow.schema]
    return arrow.cast(pa.schema(fields, arrow.schema.metadata))


def _quoted(path: Path) -> str:
    return _text(glob.escape(str(path)))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
