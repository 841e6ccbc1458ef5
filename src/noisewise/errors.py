"""Every error a user of noisewise can meet.

    NoisewiseError
    ├── SchemaError      the public schema is not well formed
    ├── WorkloadError    the marginals asked for do not fit the schema, or are too large
    ├── StudyError       the study file is not well formed
    ├── BudgetError      a privacy budget is invalid, spent, or refused
    ├── DataError        the confidential table does not fit the schema
    ├── ModelError       the model would not fit in memory
    ├── FitError         no posterior could be computed, or it may not be used as it is
    ├── ReleaseError     a release folder is damaged, edited, or of an unknown version
    └── AnalysisError    an analysis cannot be run, or cannot be pooled

A message names the thing, the value, the condition and the next step. The one exception is
`DataError`: it is raised next to real records, so it carries a code from a fixed list and the name
of a column, never a value, a row or a count.
"""

import difflib
from collections.abc import Iterable
from typing import ClassVar


class NoisewiseError(Exception):
    """Base of all errors that noisewise raises on purpose; `exit_code` is what the commands return."""

    exit_code = 1


class SchemaError(NoisewiseError):
    """The public schema is not well formed."""

    exit_code = 3


class WorkloadError(NoisewiseError):
    """The marginals asked for do not fit the schema, repeat each other, or are too large."""

    exit_code = 3


class StudyError(NoisewiseError):
    """The study file is not well formed."""

    exit_code = 3


class BudgetError(NoisewiseError):
    """A privacy budget is invalid, already spent, or would pass its cap."""

    exit_code = 4


class DataError(NoisewiseError):
    """The confidential table does not fit the schema: a code and a column's name, nothing else.

    `code` is one of the keys of `DataError.CODES`; `column` is a name from the public schema.
    """

    exit_code = 5

    CODES: ClassVar[dict[str, str]] = {
        "source-not-found": "The source could not be found. Check the path in [data] source.",
        "source-not-readable": "The source could not be read. Check its format and that the file is complete.",
        "source-not-supported": (
            "This kind of source is not supported. Give a .csv, .parquet or .duckdb file, a table of PostgreSQL or "
            "Spark, or a data frame."
        ),
        "password-in-source": (
            "The address in [data] source holds a password or a token, which files and logs would keep. Take it out: "
            "use the environment or the password file, as for psql or Spark."
        ),
        "library-missing": (
            "The library for this kind of source is not installed: pip install noisewise[postgres] or noisewise[spark]."
        ),
        "server-not-reached": (
            "The server could not be reached or did not let you in. Check the address and your credentials; the "
            "server's own message is withheld because it may quote them."
        ),
        "table-not-found": "The database has no such table. Check the name after '::' in [data] source.",
        "column-not-found": (
            "The source has no such column. Check the spelling in the schema and in the source's header."
        ),
        "column-duplicated": "The source has this column more than once. Give each column its own name.",
        "value-outside-schema": (
            "Some value of this column is not in the schema. Declare it, declare `other`, or set "
            'beyond = "end-bins" for a numeric column.'
        ),
        "missing-forbidden": (
            'This column has missing values and the schema forbids them. Set missing = "category" or repair the source.'
        ),
        "rule-broken": (
            "Some row has a combination that a rule of the schema says cannot occur. Correct the rule, or repair the "
            "source; nothing was measured."
        ),
        "table-empty": "The table has no rows. There is nothing to measure.",
        "table-too-small": (
            "The table is too small for the budget: delta must be below 1/rows. Lower delta or use more rows."
        ),
        "table-changed": (
            "The table changed while it was being counted. Stop other writers and measure again; the budget was not "
            "touched."
        ),
        "type-not-supported": (
            "The source stores this column in a type that cannot be counted as the schema says. Cast it to text or "
            "number."
        ),
        "time-zone-missing": (
            "The source stores instants and the schema declares no time_zone for this column. Declare the zone in "
            "which its periods are meant."
        ),
        "unit-column-missing": "max_rows_per_unit above 1 needs the column that names the unit.",
        "process-ended": (
            "The process that opens the table ended without an answer, perhaps for want of memory. Run the same "
            "command again: what was debited is not debited twice."
        ),
        "engine-failed": "The database engine failed. Its message is withheld because it may quote a record.",
    }

    def __init__(self, code: str, column: str | None = None) -> None:
        self.code, self.column = code, column
        where = f"column {column!r}: " if column is not None else ""
        super().__init__(f"{where}{self.CODES[code]} [{code}]")


class ModelError(NoisewiseError):
    """The model would be too large to hold in memory."""

    exit_code = 6


class FitError(NoisewiseError):
    """No posterior could be computed, or the one there is may not be used without an explicit flag."""

    exit_code = 6


class ReleaseError(NoisewiseError):
    """A release folder is damaged, edited, incomplete, or of an unknown version."""

    exit_code = 7


class AnalysisError(NoisewiseError):
    """An analysis cannot be run on these datasets, or its results cannot be pooled."""

    exit_code = 8


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A sentence that proposes the nearest known name, or lists the known ones."""
    known = list(candidates)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    listed = ", ".join(repr(candidate) for candidate in known[:8])
    return f"Known: {listed}{', …' if len(known) > 8 else ''}."
