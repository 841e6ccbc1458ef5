"""A first draft of a schema, for a person to correct: from a public sample, or from a codebook.

A draft saves typing. It does not know what is possible, only what it was shown: levels that happen to be missing from a
sample, sensible bin edges, and what a missing value means are for a person to say. A draft from the confidential table
itself gives away what the table holds; it is marked, and `measure` refuses it until a person has gone through it.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from noisewise.errors import SchemaError
from noisewise.schema import Boolean, Categorical, Date, Numeric, Schema
from noisewise.schema.table import Column

Origin = Literal["hand-written", "public-sample", "data-derived"]

MOST_LEVELS = 50
"""A text column with more values than this is taken for free text, which a schema cannot hold."""
FEW_NUMBERS = 12
"""Whole numbers with at most so many values, all small, are taken for codes."""
BINS = 10
"""About as many bins a column of numbers is given."""
_SMALL = 100
_WORDS = {"true", "false"}

CHECK = {
    "public-sample": "Drafted from a public sample. It knows only what that shows: add the levels that are missing.",
    "hand-written": "Drafted from a codebook.",
    "data-derived": (
        "Drafted from the confidential table itself: its levels and edges may give records away, as may this file.\n"
        '# `measure` refuses it. Go through every line against public knowledge, then write origin = "reviewed".'
    ),
}


def draft_from_table(table: pa.Table, name: str, origin: Origin) -> tuple[Schema, tuple[str, ...]]:
    """A schema that fits a table, and the names of columns it leaves out because they look like free text."""
    drafted = {column: _column(column, table[column].combine_chunks()) for column in table.column_names}
    columns = tuple(column for column in drafted.values() if column is not None)
    if not columns:
        raise SchemaError(
            "No column looks like something to count: all are empty or free text. Write the schema by hand."
        )
    left_out = tuple(column for column, found in drafted.items() if found is None)
    return Schema(name=name, origin=origin, column=columns), left_out


def draft_from_codebook(rows: Sequence[Mapping[str, str]], name: str) -> Schema:
    """A schema from a codebook: one row per level, with `column`, `value`, and `label` where there is one.

    A row with `from` and `to` in place of `value` is a column of numbers; `bins` says how many, if it is there.
    """
    grouped: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        if not row.get("column"):
            raise SchemaError("A row of the codebook names no column. It needs the headings column and value.")
        grouped.setdefault(row["column"], []).append(row)
    if not grouped:
        raise SchemaError("The codebook has no rows. It needs the headings column and value, and a row per level.")
    columns = tuple(_from_codebook(column, found) for column, found in grouped.items())
    return Schema(name=name, origin="hand-written", column=columns)


def draft_text(schema: Schema, left_out: Sequence[str] = ()) -> str:
    """The draft as a file: what it rests on, what to check, and the schema."""
    lines = [f"# {CHECK[schema.origin]}"]
    if left_out:
        lines.append(f"# Left out, because they look like free text or are empty: {', '.join(left_out)}.")
    lines.append("# Check: are all levels here that can occur? Do the edges mean something? What is a missing value?")
    return "\n".join(lines) + "\n\n" + schema.to_toml()


def _from_codebook(name: str, rows: Sequence[Mapping[str, str]]) -> Column:
    first = rows[0]
    if first.get("from") and first.get("to"):
        low, high = _number(first["from"]), _number(first["to"])
        bins = int(_number(first.get("bins") or str(BINS)))
        return Numeric(name=name, edges=_even_edges(low, high, bins), beyond="end-bins")
    levels: list[str] = []
    fold: dict[str, tuple[str | int, ...]] = {}
    for row in rows:
        value, label = row.get("value") or "", row.get("label") or ""
        if not value:
            raise SchemaError(
                f"The codebook's column {name!r} has a row without a value. Give one, or `from` and `to`."
            )
        levels.append(label or value)
        if label and label != value:
            fold[label] = (value,)
    try:
        return Categorical(name=name, levels=tuple(levels), fold=fold)
    except ValueError:
        raise SchemaError(
            f"The codebook's column {name!r} repeats a value or a label. Remove the repetition."
        ) from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SchemaError("The codebook's `from`, `to` and `bins` must be numbers. Correct them.") from None


def _column(name: str, values: pa.Array) -> Column | None:
    """One column's draft; None for what cannot be counted."""
    known: dict[str, Any] = {"name": name, "missing": "category"} if values.null_count else {"name": name}
    kind, present = values.type, pc.drop_null(pc.unique(values))
    if not len(present):
        return None
    if pa.types.is_boolean(kind):
        return Boolean(**known)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        years = pc.year(present)
        low, high = pc.min(years).as_py(), pc.max(years).as_py()
        return Date(**known, first=date(low, 1, 1), last=date(high, 12, 31), period="year", beyond="end-bins")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _numbers(known, pc.drop_null(present.cast(pa.float64())), pa.types.is_integer(kind))
    texts = [str(value) for value in present.to_pylist()]
    if {text.lower() for text in texts} <= _WORDS:
        return Boolean(**known)
    return Categorical(**known, levels=tuple(sorted(texts))) if len(texts) <= MOST_LEVELS else None


def _numbers(known: dict[str, Any], present: pa.Array, whole: bool) -> Column | None:
    finite = [value for value in present.to_pylist() if math.isfinite(value)]
    if not finite:
        return None
    if whole and len(finite) <= FEW_NUMBERS and max(map(abs, finite)) < _SMALL:
        return Categorical(**known, levels=tuple(sorted(int(value) for value in finite)))
    edges = _even_edges(min(finite), max(finite), BINS)
    return Numeric(**known, edges=edges, integer=whole and all(edge.is_integer() for edge in edges), beyond="end-bins")


def _even_edges(low: float, high: float, bins: int) -> tuple[float, ...]:
    """Edges at round numbers, about so many bins apart: 1, 2 or 5 times a power of ten."""
    if not low < high:
        high = low + 1
    rough = (high - low) / max(bins, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step), math.ceil(high / step)
    return tuple(float(f"{i * step:.12g}") for i in range(first, max(last, first + 1) + 1))
