"""An open source: a table inside an engine, and how to ask it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.errors import DataError


def _leave_open() -> None:
    """What belongs to somebody else is not closed."""


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

    def run(self, query: str) -> np.ndarray:
        """What an SQL query returns, which must be whole numbers: level codes and counts, never a row.

        Past Ibis, whose own ways of fetching leave cursors open on PostgreSQL and go through pandas on Spark.
        """
        engine = self.backend.name
        if engine == "duckdb":
            found = self.backend.con.execute(query).fetchnumpy().values()
            return np.column_stack([np.asarray(values, np.int64) for values in found])
        if engine == "pyspark":
            found = self.backend._session.sql(query).toArrow().columns
            return np.column_stack([np.asarray(values, np.int64) for values in found])
        with self.backend.con.cursor() as cursor:
            rows = cursor.execute(query).fetchall()
            return np.array(rows, np.int64).reshape(len(rows), len(cursor.description))
