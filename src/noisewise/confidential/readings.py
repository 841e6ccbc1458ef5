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

OUTSIDE = -1
"""The code of a value that the schema does not know."""
FORBIDDEN = -2
"""The code of a missing value where the schema forbids it."""

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
        return _place(column, value) if _may_be_placed(read, value) else ibis.null("int8")
    if isinstance(column, Date | Datetime):
        prefix = f"{name}_"
        parts = {part.removeprefix(prefix): read[part] for part in read.columns if part.startswith(prefix)}
        return seconds_of(column, parts) if f"{name}_text" in read.columns else ibis.null("int64")
    if value.type().is_string():
        text = read[f"{name}_text"]
        return text.re_replace("[.].*$", "").cast("int64") if _needs_whole(column) else text.cast("float64")
    return _stored_number(column, value)


def _may_be_placed(read: Any, value: Any) -> bool:
    """Whether the engine finds the code of a text fast.

    DuckDB looks once for each text in a block's dictionary, as long as functions do it all: this halves the time of
    counting. The others would look once for each row, as they do with CASE.
    """
    return bool(value.type().is_string()) and read.get_backend().name == "duckdb"


def _place(column: Categorical, value: Any) -> Any:
    """The code of a text, NULL among them: it is looked for in a list, and its place leads to the code in another."""
    import ibis
    import ibis.expr.datatypes as dt

    @ibis.udf.scalar.builtin(signature=((dt.Array(dt.string), dt.string), dt.int64))  # type: ignore[untyped-decorator]
    def list_position(texts: Any, text: Any) -> Any:
        """What DuckDB calls it; it finds NULL too."""

    @ibis.udf.scalar.builtin(signature=((dt.Array(dt.int32), dt.int64), dt.int32))  # type: ignore[untyped-decorator]
    def list_extract(numbers: Any, place: Any) -> Any:
        """What DuckDB calls it."""

    code_of = text_codes(column)
    unknown = column.labels.index(column.other) if column.other is not None else OUTSIDE
    found = ibis.greatest(list_position(list(code_of), value), 0)  # the place that is not NULL
    return list_extract([unknown, *code_of.values()], found + 1)


def text_codes(column: Categorical) -> dict[str | None, int]:
    """The code of every text that a column of texts declares, and of NULL."""
    if_missing = column.size - 1 if column.missing == "category" else FORBIDDEN
    codes = {str(text): code for code, texts in enumerate(column.source_values) for text in texts}
    return codes | dict.fromkeys((*column.missing_values, None), if_missing)


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
