"""From a source's values to level codes, as portable Ibis expressions: nothing here runs, it only describes.

The code of a level is its position in the column's labels. Two codes are reasons to refuse the table: `OUTSIDE` for a
value the schema does not know, `FORBIDDEN` for a missing value where the schema forbids it. No row is ever dropped.
"""

import math
from collections.abc import Callable
from typing import Any

from noisewise.errors import DataError
from noisewise.schema import Boolean, Categorical, Column, Numeric

OUTSIDE = -1
FORBIDDEN = -2

_NUMBER = r"^[-+]?([0-9]{1,18}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,2})?$"


def level_code(column: Column, value: Any) -> Any:
    """The Ibis expression of a value's level code under the column's declaration."""
    if isinstance(column, Categorical):
        return (_integer_levels if column.integer_levels else _text_levels)(column, value)
    if isinstance(column, Boolean):
        return _yes_or_no(column, value)
    return _bins(column, value)


def _text_levels(column: Categorical, value: Any) -> Any:
    text = value.cast("string")
    others = column.labels.index(column.other) if column.other is not None else OUTSIDE
    levels = [(text == level, code) for code, level in enumerate(column.declared_labels) if level != column.other]
    return _coded(column, _missing(column, value), levels, others)


def _integer_levels(column: Categorical, value: Any) -> Any:
    number = _number(column, value)
    levels = [(number == level, code) for code, level in enumerate(column.levels)]
    return _coded(column, _missing(column, value, number), levels, OUTSIDE)


def _yes_or_no(column: Boolean, value: Any) -> Any:
    if value.type().is_boolean():
        return _coded(column, _missing(column, value), [(~value, 0), (value, 1)], OUTSIDE)
    number = _number(column, value)
    no, yes = number == 0, number == 1
    if value.type().is_string():
        word = value.strip().lower()
        no, yes = (word == "false") | no.fill_null(False), (word == "true") | yes.fill_null(False)
    return _coded(column, _missing(column, value, number), [(no, 0), (yes, 1)], OUTSIDE)


def _bins(column: Numeric, value: Any) -> Any:
    number = _number(column, value)
    lowest, highest, last = column.edges[0], column.edges[-1], len(column.edges) - 2
    cases = []
    if math.isfinite(lowest):
        cases.append((number < lowest, 0 if column.beyond == "end-bins" else OUTSIDE))
    for code, edge in enumerate(column.edges[1:-1]):
        cases.append((number < edge if column.closed == "left" else number <= edge, code))
    if math.isfinite(highest):
        cases += [(number <= highest, last), (number > highest, last if column.beyond == "end-bins" else OUTSIDE)]
    else:
        cases.append((number.notnull(), last))
    return _coded(column, _missing(column, value, number), cases, OUTSIDE)


def _coded(column: Column, missing: Any, cases: list[tuple[Any, int]], otherwise: int) -> Any:
    import ibis

    if_missing = column.size - 1 if column.missing == "category" else FORBIDDEN
    branches = [(missing, if_missing), *cases]
    return ibis.cases(
        *((condition, ibis.literal(code, "int32")) for condition, code in branches),
        else_=ibis.literal(otherwise, "int32"),
    )


def _missing(column: Column, value: Any, number: Any = None) -> Any:
    """NULL, NaN and the declared missing values; in columns of numbers also empty and "NaN" texts."""
    kind = value.type()
    signs = [value.isnull()]
    if kind.is_floating():
        signs.append(value.isnan())
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


def _number(column: Column, value: Any) -> Any:
    """The value as a number; NULL where a text is none. Texts are checked before they are converted."""
    import ibis

    kind = value.type()
    if kind.is_integer() or kind.is_floating():
        return value
    if kind.is_boolean():
        return value.cast("int8")
    if kind.is_decimal():
        return value.cast("float64")
    if not kind.is_string():
        raise DataError("type-not-supported", column.name)
    text = value.strip()
    return ibis.ifelse(text.re_search(_NUMBER), text, ibis.null("string")).cast("float64")


def _parsed(text: str) -> float | None:
    to_number: Callable[[str], float] = float
    try:
        number = to_number(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
