"""What a source's values say, whatever type stores them: numbers, and moments as seconds, NULL where a text is neither.

Texts are read in steps, each a SELECT around the one before: checked, taken apart, turned into a number. Written in
one piece, every comparison with an edge would repeat the whole reading. No text is converted before it was checked:
engines quote what they cannot convert.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from noisewise.confidential.moments import END, END_PATTERN, checked_moment, parts_of, seconds_of
from noisewise.errors import DataError
from noisewise.schema import Boolean, Categorical, Column, Date, Datetime

_NUMBER = "^[-+]?([0-9]{1,18}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][-+]?[0-9]{1,2})?" + END_PATTERN
_WHOLE = "^[-+]?[0-9]{1,18}([.]0{0,40})?" + END_PATTERN
_ALL = 2**62
_EXACT = 2**53  # up to here a double holds every whole number


def with_readings(table: Any, columns: Mapping[str, Column], keep: Sequence[str]) -> Any:
    """The columns, and for each its reading under `reading_name`; the columns to `keep` are passed on as they are."""
    texts = {name: column for name, column in columns.items() if _as_text(column, table[name])}
    moments = {name: column for name, column in texts.items() if isinstance(column, Date | Datetime)}
    read = table.select(*columns, *keep)
    if not texts:
        return read.mutate(**{reading_name(name): _reading(read, name, column) for name, column in columns.items()})
    apart = _kept_apart(table)
    read = apart(read.mutate(**{f"{name}_text": _checked(column, read[name]) for name, column in texts.items()}))
    read = apart(
        read.mutate(
            **{
                f"{name}_{part}": number
                for name, column in moments.items()
                for part, number in parts_of(column, read[f"{name}_text"]).items()
            }
        )
    )
    return apart(read.mutate(**{reading_name(name): _reading(read, name, column) for name, column in columns.items()}))


def _kept_apart(table: Any) -> Callable[[Any], Any]:
    """Keeps PostgreSQL from writing a step into the next: it stops at a LIMIT, which here limits nothing."""
    return (lambda step: step.limit(_ALL)) if table.get_backend().name == "postgres" else (lambda step: step)


def reading_name(name: str) -> str:
    """What a column's reading is called."""
    return f"{name}_reading"


def _as_text(column: Column, value: Any) -> bool:
    """Whether a column's values are texts to be read."""
    kind = value.type()
    if isinstance(column, Categorical) and not column.integer_levels:
        return False  # a text that stands for itself
    return bool(kind.is_string() or (isinstance(column, Date | Datetime) and kind.is_integer()))


def _checked(column: Column, value: Any) -> Any:
    """A text without blanks around it; NULL unless it can be converted."""
    import ibis

    if isinstance(column, Date | Datetime):
        return checked_moment(column, value)
    text = value.strip()
    pattern = _WHOLE if _needs_whole(column) else _NUMBER
    return ibis.ifelse((text + END).re_search(pattern), text, ibis.null("string"))


def _reading(read: Any, name: str, column: Column) -> Any:
    import ibis

    value = read[name]
    if isinstance(column, Categorical) and not column.integer_levels:
        return _place(column, value) if _may_be_placed(column, read, value) else ibis.null("int8")
    if isinstance(column, Date | Datetime):
        prefix = f"{name}_"
        parts = {part.removeprefix(prefix): read[part] for part in read.columns if part.startswith(prefix)}
        return seconds_of(column, parts) if f"{name}_text" in read.columns else ibis.null("int64")
    if value.type().is_string():
        text = read[f"{name}_text"]
        return text.re_replace("[.].*$", "").cast("int64") if _needs_whole(column) else text.cast("float64")
    return _stored_number(column, value)


def _may_be_placed(column: Categorical, read: Any, value: Any) -> bool:
    """Whether a text's place among the levels is its code, and the engine finds places fast.

    DuckDB looks once for each text in a block's dictionary, which halves the time of counting. The others would look
    once for each row, as they do without.
    """
    plain = all(len(values) == 1 for values in column.source_values) and column.other not in column.levels
    return plain and bool(value.type().is_string()) and read.get_backend().name == "duckdb"


def _place(column: Categorical, value: Any) -> Any:
    """The place of a text among the levels, counted from 1; NULL for others."""
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(signature=((dt.Array(dt.string), dt.string), dt.int32))  # type: ignore[untyped-decorator]
    def list_position(texts: Any, text: Any) -> Any:
        """What DuckDB calls it."""

    return list_position([str(level) for level in column.levels], value)


def _stored_number(column: Column, value: Any) -> Any:
    kind = value.type()
    if kind.is_integer():
        return value
    if kind.is_floating() or kind.is_decimal():
        return value.cast("float64")
    if kind.is_boolean() and not isinstance(column, Date | Datetime):
        return value.cast("int32")
    raise DataError("type-not-supported", column.name)


def _needs_whole(column: Column) -> bool:
    """Whether a double could not tell the levels apart."""
    if isinstance(column, Boolean) or not isinstance(column, Categorical):
        return False
    return any(abs(int(level)) >= _EXACT for values in column.source_values for level in values)
