"""An open source: a table inside an engine, and how to ask it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

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

    @property
    def engine(self) -> str:
        """The engine's name, as Ibis calls it: "duckdb", "postgres", "pyspark", …."""
        name: str = self.table.get_backend().name
        return name

    def column(self, name: str) -> Any:
        """The Ibis column with this name; an error when there is none, or more than one."""
        found = [position for position, own in enumerate(self.names) if own == name]
        if not found:
            raise DataError("column-not-found", name)
        if len(found) > 1:
            raise DataError("column-duplicated", name)
        return self.table[self.table.columns[found[0]]]

    def ask(self, question: Any) -> pa.Table:
        """Run a query that returns cell numbers and counts, or signs, and never a row."""
        backend = self.table.get_backend()
        if self.engine == "postgres":  # Ibis leaves a cursor open on the server when a query fails
            with backend.con.cursor() as cursor:
                rows = cursor.execute(backend.compile(question)).fetchall()
            return pa.table(dict(zip(question.columns, zip(*rows, strict=True), strict=True)))
        answer: pa.Table = question.to_pyarrow()
        return answer
