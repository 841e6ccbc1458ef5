"""From a source's values to level codes, as portable Ibis expressions: nothing here runs, it only describes.

The code of a level is its position in the column's labels. Two codes are reasons to refuse the table: `OUTSIDE` for a
value the schema does not know, `FORBIDDEN` for a missing value where the schema forbids it. No row is ever dropped.
Only comparisons, arithmetic on whole numbers, CASE, and regular expressions that all engines read alike are used.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from noisewise.confidential.moments import period_of
from noisewise.errors import DataError
from noisewise.schema import Boolean, Categorical, Column, Date, Datetime, Numeric, QuantileNumeric

OUTSIDE = -1
FORBIDDEN = -2

_NUMBER = r"^[-+]?([0-9]{1,18}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][-+]?[0-9]{1,2})?$"
_WHOLE = r"^[-+]?[0-9]{1,18}(\.0{0,40})?$"
_EXACT = 2**53  # up to here a double holds every whole number


def level_code(column: Column, value: Any) -> Any:
    """The Ibis expression of a value's level code under the column's declaration."""
    if isinstance(column, Categorical):
        return (_integer_levels if column.integer_levels else _text_levels)(column, value)
    if isinstance(column, Boolean):
        return _yes_or_no(column, value)
    if isinstance(column, Date | Datetime):
        return _periods(column, value)
    return _bins(column.on_grid if isinstance(column, QuantileNumeric) else column, value)


def _text_levels(column: Categorical, value: Any) -> Any:
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


def _integer_levels(column: Categorical, value: Any) -> Any:
    largest = max(abs(int(level)) for values in column.source_values for level in values)
    number = _whole(value) if value.type().is_string() and largest >= _EXACT else _number(column, value)
    levels = [(_is_any(number, list(values)), code) for code, values in enumerate(column.source_values)]
    return _coded(column, _missing(column, value, number), levels, OUTSIDE)


def _whole(value: Any) -> Any:
    """A text as a whole number, without a detour through floating point; NULL where it is none."""
    import ibis

    text = value.strip()
    return ibis.ifelse(text.re_search(_WHOLE), text.re_replace(r"\..*$", ""), ibis.null("string")).cast("int64")


def _yes_or_no(column: Boolean, value: Any) -> Any:
    if value.type().is_boolean():
        return _coded(column, _missing(column, value), [(~value, 0), (value, 1)], OUTSIDE)
    number = _number(column, value)
    no, yes = number == 0, number == 1
    if value.type().is_string():
        word = value.strip().lower()
        no = (word == "false") | no.fill_null(False) | _is_any(value, list(column.false_values))
        yes = (word == "true") | yes.fill_null(False) | _is_any(value, list(column.true_values))
    return _coded(column, _missing(column, value, number), [(no, 0), (yes, 1)], OUTSIDE)


def _bins(column: Numeric, value: Any) -> Any:
    number = _number(column, value)
    lowest, highest, last = column.edges[0], column.edges[-1], column.bins - 1
    below, above = (0, last) if column.beyond == "end-bins" else (OUTSIDE, OUTSIDE)
    codes = [(_means(column, value, number, text), column.bins + i) for i, text in enumerate(column.codes)]
    ends = [(number.isnull(), OUTSIDE)]
    if math.isfinite(lowest):
        ends.append((number < lowest, below))
    if math.isfinite(highest):
        ends.append((number > highest, above))
    inside: Callable[[float], Any] = (lambda edge: number < edge) if column.closed == "left" else number.__le__
    return _coded(column, _missing(column, value, number), [*codes, *ends], position(inside, column.edges[1:-1]))


def position(before: Callable[[Any], Any], boundaries: Sequence[Any], first: int = 0) -> Any:
    """How many boundaries do not come after a value, by halving: `before(b)` says that the value lies before b.

    A CASE with a branch per boundary would compare every value with half of them.
    """
    import ibis

    if not boundaries:
        return ibis.literal(first, "int32")
    middle = len(boundaries) // 2
    lower = position(before, boundaries[:middle], first)
    upper = position(before, boundaries[middle + 1 :], first + middle + 1)
    return ibis.ifelse(before(boundaries[middle]), lower, upper)


def _means(column: Column, value: Any, number: Any, text: str) -> Any:
    """Whether a value in a column of numbers is a declared code: the same text, or the same number."""
    parsed = _parsed(text)
    if parsed is not None:
        return (number == parsed).fill_null(False)
    return value == text if value.type().is_string() else _is_any(value, [])


def _periods(column: Date | Datetime, value: Any) -> Any:
    found = period_of(column, value, position)
    last = len(column.starts) - 2
    below, above = (0, last) if column.beyond == "end-bins" else (OUTSIDE, OUTSIDE)
    ends = [(found.isnull(), OUTSIDE), (found == 0, below), (found == last + 2, above)]
    return _coded(column, _missing(column, value), ends, (found - 1).cast("int32"))


def _coded(column: Column, missing: Any, cases: list[tuple[Any, int]], otherwise: Any) -> Any:
    import ibis

    if_missing = column.size - 1 if column.missing == "category" else FORBIDDEN
    branches = [(missing, if_missing), *cases]
    return ibis.cases(
        *((condition, ibis.literal(code, "int32")) for condition, code in branches),
        else_=ibis.literal(otherwise, "int32") if isinstance(otherwise, int) else otherwise,
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
