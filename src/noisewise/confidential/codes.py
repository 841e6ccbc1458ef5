"""From a source's values to level codes, as portable Ibis expressions: nothing here runs, it only describes.

The code of a level is its position in the column's labels. Two codes are reasons to refuse the table: `OUTSIDE` for a
value the schema does not know, `FORBIDDEN` for a missing value where the schema forbids it. No row is ever dropped.
Only comparisons, arithmetic on whole numbers, CASE, and regular expressions that all engines read alike are used.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from noisewise.confidential.moments import period_of
from noisewise.confidential.readings import FORBIDDEN, OUTSIDE, reading_name, with_readings
from noisewise.confidential.source import Source
from noisewise.schema import Boolean, Categorical, Column, Date, Datetime, Numeric, QuantileNumeric

_LONGS = (-(2**63), 2**63 - 1)


def level_codes(table: Any, columns: Mapping[str, Column], keep: Sequence[str] = ()) -> Any:
    """A table of level codes: `columns` says which of a table's columns are meant, and how; names stay.

    The columns to `keep` are passed on as they are.
    """
    ready = {n: c.on_grid if isinstance(c, QuantileNumeric) else c for n, c in columns.items()}
    read = with_readings(table, ready, keep)
    moments = {name: column for name, column in ready.items() if isinstance(column, Date | Datetime)}
    periods = {
        name: period_of(
            column, read[name], read[reading_name(name)], partial(position, leaves=_period_leaves(column, read[name]))
        )
        for name, column in moments.items()
    }
    read = read.mutate(**{reading_name(name): period for name, period in periods.items()})
    codes = {name: _level_code(column, read[name], read[reading_name(name)]) for name, column in ready.items()}
    return read.select(**codes, **{name: read[name] for name in keep})


def rows_of_codes(source: Source, columns: Sequence[Column]) -> np.ndarray:
    """The level codes of all rows, one column per column. For public tables: of others no row leaves the engine."""
    named = {f"v{i}": column for i, column in enumerate(columns)}
    values = source.table.select(**{name: source.column(column.name) for name, column in named.items()})
    return source.run(source.backend.compile(level_codes(values, named)))


def _level_code(column: Column, value: Any, reading: Any) -> Any:
    if isinstance(column, Categorical):
        return (
            _integer_levels(column, value, reading) if column.integer_levels else _text_levels(column, value, reading)
        )
    if isinstance(column, Boolean):
        return _yes_or_no(column, value, reading)
    if isinstance(column, Date | Datetime):
        return _periods(column, value, reading)
    assert isinstance(column, Numeric)
    return _bins(column, value, reading)


def _text_levels(column: Categorical, value: Any, code: Any) -> Any:
    if code.type().is_int32():  # the engine has found it
        return code
    others = column.labels.index(column.other) if column.other is not None else OUTSIDE
    own = [tuple(map(str, values)) for values in column.source_values]
    levels = [(_among(value, values), code) for code, values in enumerate(own)]
    if column.other is not None and len(own[others]) == 1:
        del levels[others]  # the label of `other` is taken by everything that is not declared
    return _coded(column, _missing(column, value), levels, others)


def _among(value: Any, texts: Sequence[str]) -> Any:
    """Whether a value is one of some texts. How engines write a number as text differs, so numbers are compared."""
    kind = value.type()
    if kind.is_floating() or kind.is_decimal():
        numbers = [number for number in map(_parsed, texts) if number is not None]
        return _is_any(value, [n for n in numbers if any(_plainly(n) == text for text in texts)])
    return _is_any(value.cast("string"), list(texts))


def _is_any(value: Any, wanted: list[Any]) -> Any:
    import ibis

    if not wanted:
        return ibis.literal(False)
    return value == wanted[0] if len(wanted) == 1 else value.isin(wanted)


def _plainly(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _integer_levels(column: Categorical, value: Any, number: Any) -> Any:
    levels = [(_is_any(number, list(values)), code) for code, values in enumerate(column.source_values)]
    return _coded(column, _missing(column, value, number), levels, OUTSIDE)


def _yes_or_no(column: Boolean, value: Any, number: Any) -> Any:
    if value.type().is_boolean():
        sides = [(~value, 0), (value, 1)]
        if _missing_comes_last(column):
            return _cases([*sides, (_missing(column, value), _if_missing(column))], OUTSIDE)
        return _coded(column, _missing(column, value), sides, OUTSIDE)
    no, yes = number == 0, number == 1
    if value.type().is_string():
        word = value.strip().lower()
        no = (word == "false") | no.fill_null(False) | _is_any(value, list(column.false_values))
        yes = (word == "true") | yes.fill_null(False) | _is_any(value, list(column.true_values))
    return _coded(column, _missing(column, value, number), [(no, 0), (yes, 1)], OUTSIDE)


def _bins(column: Numeric, value: Any, number: Any) -> Any:
    compare = _less if column.closed == "left" else _at_most
    tests = [(compare, edge) for edge in column.edges[1:-1]]
    leaves = list(range(column.bins))
    if math.isfinite(column.edges[0]):
        tests.insert(0, (_less, column.edges[0]))
        leaves.insert(0, 0 if column.beyond == "end-bins" else OUTSIDE)
    if math.isfinite(column.edges[-1]):
        tests.append((_at_most, column.edges[-1]))
        leaves.append(column.bins - 1 if column.beyond == "end-bins" else OUTSIDE)
    codes = [(_means(value, number, text), column.bins + i) for i, text in enumerate(column.codes)]
    cases, missing = [*codes, *_unread(value, number)], _missing(column, value, number)
    place = partial(position, lambda test: test[0](number, test[1]), tests)
    if cases or not _missing_comes_last(column):
        return _coded(column, missing, cases, place(leaves))
    return place([*leaves[:-1], _cases([(missing, _if_missing(column))], leaves[-1])])


def _unread(value: Any, reading: Any) -> list[tuple[Any, int]]:
    """A text that is no number, or no moment, is outside; what other types hold always is one."""
    read = value.type().is_string() or reading.type() != value.type()
    return [(reading.isnull(), OUTSIDE)] if read else []


def _less(number: Any, edge: float) -> Any:
    """Below an edge; whole numbers are compared with whole numbers, because a double does not hold them all."""
    return number < (_within_longs(math.ceil(edge)) if number.type().is_integer() else edge)


def _at_most(number: Any, edge: float) -> Any:
    return number <= (_within_longs(math.floor(edge)) if number.type().is_integer() else edge)


def _within_longs(edge: int) -> int:
    return min(max(edge, _LONGS[0]), _LONGS[1])


def position(before: Callable[[Any], Any], boundaries: Sequence[Any], leaves: Sequence[Any]) -> Any:
    """The leaf for a value's place among boundaries, by halving: `before(b)` says that the value lies before b.

    A CASE with a branch per boundary would compare every value with half of them. NULL and NaN lie before nothing, and
    end at the last leaf. A leaf is a code or an expression.
    """
    import ibis

    if all(isinstance(leaf, int) and leaf == leaves[0] for leaf in leaves):
        return ibis.literal(leaves[0], "int32")
    if not boundaries:
        return leaves[0]
    middle = len(boundaries) // 2
    lower = position(before, boundaries[:middle], leaves[: middle + 1])
    upper = position(before, boundaries[middle + 1 :], leaves[middle + 1 :])
    return ibis.ifelse(before(boundaries[middle]), lower, upper)


def _means(value: Any, number: Any, text: str) -> Any:
    """Whether a value in a column of numbers is a declared code: the same text, or the same number."""
    parsed = _parsed(text)
    if parsed is not None:
        return (number == parsed).fill_null(False)
    return value == text if value.type().is_string() else _is_any(value, [])


def _periods(column: Date | Datetime, value: Any, found: Any) -> Any:
    read = value.type().is_string() or value.type().is_integer()
    if not read and _missing_comes_last(column):
        return found
    return _coded(column, _missing(column, value), [(found.isnull(), OUTSIDE)] if read else [], found)


def _period_leaves(column: Date | Datetime, value: Any) -> list[Any]:
    """The code before the first period, those of the periods, and the code after the last: or of what is missing."""
    last = len(column.starts) - 2
    below, above = (0, last) if column.beyond == "end-bins" else (OUTSIDE, OUTSIDE)
    return [below, *range(last + 1), _cases([(value.isnull(), _if_missing(column))], above)]


def _coded(column: Column, missing: Any, cases: list[tuple[Any, int]], otherwise: Any) -> Any:
    return _cases([(missing, _if_missing(column)), *cases], otherwise)


def _cases(branches: list[tuple[Any, int]], otherwise: Any) -> Any:
    import ibis

    return ibis.cases(
        *((condition, ibis.literal(code, "int32")) for condition, code in branches),
        else_=ibis.literal(otherwise, "int32") if isinstance(otherwise, int) else otherwise.cast("int32"),
    )


def _if_missing(column: Column) -> int:
    return column.size - 1 if column.missing == "category" else FORBIDDEN


def _missing_comes_last(column: Column) -> bool:
    """Whether only NULL and NaN are missing, which no comparison is true of: they need no look before it."""
    return not column.missing_values


def _missing(column: Column, value: Any, number: Any = None) -> Any:
    """NULL, NaN and the declared missing values; in columns of numbers also empty and "NaN" texts."""
    kind = value.type()
    signs = [value.isnull()]
    if kind.is_floating() or kind.is_decimal():  # decimals too have a NaN in some engines
        signs.append(value.cast("float64").isnan())
    if kind.is_string() and number is not None:
        signs.append(value.strip().lower().isin(("", "nan")))
    if column.missing_values and not kind.is_floating():
        signs.append(value.cast("string").isin(column.missing_values))
    numbers = [parsed for parsed in map(_parsed, column.missing_values) if parsed is not None]
    if number is not None and numbers:
        signs.append(number.isin(numbers).fill_null(False))
    condition = signs[0]
    for sign in signs[1:]:
        condition = condition | sign
    return condition


def _parsed(text: str) -> float | None:
    to_number: Callable[[str], float] = float
    try:
        number = to_number(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
