"""Errors of engines and readers quote values; this file is why none of them is ever seen."""

from collections.abc import Callable
from typing import TypeVar

from noisewise.confidential.boundary import unseen_warnings
from noisewise.errors import DataError

Result = TypeVar("Result")


def withheld(work: Callable[[], Result], code: str, column: str | None = None) -> Result:
    """Do the work; should it fail, raise `DataError(code, column)` and nothing of what the failure said.

    The new error is raised after the old one has been let go, so that neither its cause nor its context leads to
    a record. (A context manager could not do this: what it raises is chained to what it caught.)
    """
    mine: DataError | None = None
    try:
        with unseen_warnings():
            return work()
    except DataError as error:
        mine = DataError(error.code, error.column)
    except Exception:  # whatever it is, it may quote a record
        mine = None
    raise mine if mine is not None else DataError(code, column)
