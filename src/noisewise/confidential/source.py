"""An open source: a table inside an engine, and how to ask it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.errors import DataError

_LOOK_EVERY = 0.2  # seconds between two questions how far a query is


def _leave_open() -> None:
    """What belongs to somebody else is not closed."""


def _as_it_is(query: str) -> str:
    """An engine that is not ours holds nothing for us."""
    return query


def _unheard(share: float) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Source:
    """An open source: an Ibis table and the public names of its columns, position by position."""

    table: Any
    """The Ibis table."""
    names: tuple[str, ...]
    """The source's own column names, in the order of the table's columns."""
    close: Callable[[], None] = _leave_open
    """Lets go of what was opened for this source, and of nothing else."""
    failure: str = "engine-failed"
    """The code of the error when reading fails: files are read only when they are counted."""
    hold: Callable[[str], str] = _as_it_is
    """Makes a query that is asked of many times cheaper to ask again, where the engine is ours and has the room."""
    rows_at_once: int | None = None
    """How many rows the engine may sort at once, where it must not write to disk; None where it may."""
    instants: frozenset[int] = frozenset()
    """Positions of columns that hold instants although Ibis takes them for local times."""

    @property
    def backend(self) -> Any:
        """The engine as Ibis knows it; its `name` is "duckdb", "postgres", "pyspark" or another."""
        return self.table.get_backend()

    def column(self, name: str) -> Any:
        """The Ibis column with this name; an error when there is none, or more than one."""
        found = [position for position, own in enumerate(self.names) if own == name]
        if not found:
            raise DataError("column-not-found", name)
        if len(found) > 1:
            raise DataError("column-duplicated", name)
        column = self.table[self.table.columns[found[0]]]
        return column.cast("timestamp('UTC')") if found[0] in self.instants else column

    def run(self, query: str, pulse: Callable[[float], None] = _unheard) -> np.ndarray:
        """What an SQL query returns, which must be whole numbers: level codes and counts, never a row.

        `pulse` is told the share that is done, where the engine says it. Past Ibis, whose own ways of fetching leave
        cursors open on PostgreSQL and go through pandas on Spark.
        """
        engine = self.backend.name
        if engine == "duckdb":
            found = _in_duckdb(self.backend.con, query, pulse)
            return np.column_stack([np.asarray(values, np.int64) for values in found.values()])
        if engine == "pyspark":
            columns = self.backend._session.sql(query).toArrow().columns
            return np.column_stack([np.asarray(values, np.int64) for values in columns])
        with self.backend.con.cursor() as cursor:
            rows = cursor.execute(query).fetchall()
            return np.array(rows, np.int64).reshape(len(rows), len(cursor.description))


def _in_duckdb(connection: Any, query: str, pulse: Callable[[float], None]) -> dict[str, np.ndarray]:
    """Run a query in a thread, and meanwhile ask the engine how far it is; an interruption stops the engine too."""
    most = 1.0 if pulse is _unheard else _share_of_reading(connection, query)
    told = 0.0
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: connection.execute(query).fetchnumpy())
        try:
            while not wait([running], timeout=_LOOK_EVERY).done:
                told = max(told, min(1.0, connection.query_progress() / 100 / most))
                pulse(told)
        except BaseException:
            connection.interrupt()
            raise
        found: dict[str, np.ndarray] = running.result()
        return found


def _share_of_reading(connection: Any, query: str) -> float:
    """How far the engine thinks it is when the table has been read, as it gives every step of its plan some weight.

    What comes after reading takes next to no time: groups are few. The steps that take what another has prepared are
    those that group and those that read a shared step; the weight of each is how many rows it is expected to pass on.
    """
    (plan,) = json.loads(connection.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()[0][1])
    reading = following = 0
    steps = [plan]
    while steps:
        step = steps.pop()
        steps += step["children"]
        rows = int(step.get("extra_info", {}).get("Estimated Cardinality", 0))
        if "GROUP_BY" in step["name"] or step["name"] == "CTE_SCAN":
            following += rows
        elif not step["children"] or "WINDOW" in step["name"]:
            reading += rows
    return reading / (reading + following) if reading else 1.0
