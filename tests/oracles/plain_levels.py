"""Which level a value has, value by value in plain Python: slow, obvious, and written without a look at any engine."""

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from noisewise.schema import Boolean, Categorical, Column, Date, Numeric

OUTSIDE = -1
FORBIDDEN = -2
BLANKS = " \t\n\r\v\f"


def level(column: Column, value) -> int:
    """The code of the level of a value as Python has it: str, int, float, Decimal, bool, date, datetime or None."""
    if is_missing(column, value):
        return column.size - 1 if column.missing == "category" else FORBIDDEN
    if isinstance(column, Categorical):
        return integer_level(column, value) if column.integer_levels else text_level(column, value)
    if isinstance(column, Boolean):
        return boolean_level(column, value)
    return number_level(column, value) if isinstance(column, Numeric) else moment_level(column, value)


def is_missing(column, value) -> bool:
    if value is None or (isinstance(value, float | Decimal) and math.isnan(value)):
        return True
    if isinstance(value, float | Decimal):
        return math.isfinite(value) and any(number(text) == number(value) for text in column.missing_values)
    if str(value) in column.missing_values:
        return True
    numeric = isinstance(column, Boolean | Numeric) or (isinstance(column, Categorical) and column.integer_levels)
    if not numeric:
        return False
    if isinstance(value, str) and value.strip(BLANKS).lower() in ("", "nan"):
        return True
    found = number(value)
    return found is not None and any(number(text) == found for text in column.missing_values)


def number(value) -> Fraction | None:
    """The number that a value is or that a text writes; None if it is none."""
    if isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, Decimal):  # people write edges as decimals, and both become the same double
        value = float(value)
    if isinstance(value, int | float):
        return Fraction(value) if math.isfinite(value) else None
    text = value.strip(BLANKS)
    if not re.fullmatch(r"[-+]?([0-9]{1,18}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][-+]?[0-9]{1,2})?", text):
        return None
    try:
        return Fraction(float(Decimal(text)))
    except InvalidOperation:
        return None


def text_level(column, value) -> int:
    texts = {str(raw): code for code, values in enumerate(column.source_values) for raw in values}
    if isinstance(value, float | Decimal):
        text = next((t for t in texts if number(t) is not None and number(t) == number(value)), None)
    else:
        text = str(value)
    if text in texts:
        return texts[text]
    return OUTSIDE if column.other is None else column.labels.index(column.other)


def integer_level(column, value) -> int:
    if isinstance(value, str):
        text = value.strip(BLANKS)
        found = (
            Fraction(int(text.partition(".")[0]))
            if re.fullmatch(r"[-+]?[0-9]{1,18}([.]0{0,40})?", text)
            else number(value)
        )
    else:
        found = number(value)
    return next((code for code, values in enumerate(column.source_values) if found in values), OUTSIDE)


def boolean_level(column, value) -> int:
    if isinstance(value, str):
        word = value.strip(BLANKS).lower()
        if word == "true" or value in column.true_values:
            return 1
        if word == "false" or value in column.false_values:
            return 0
    return {0: 0, 1: 1}.get(number(value), OUTSIDE)


def number_level(column, value) -> int:
    for position, code in enumerate(column.codes):
        same = number(value) is not None and number(code) == number(value)
        if same or (number(code) is None and value == code):
            return column.bins + position
    found = value if isinstance(value, float) and math.isinf(value) else number(value)
    if found is None:
        return OUTSIDE
    if found < column.edges[0] or found > column.edges[-1]:
        outside = column.beyond == "refuse"
        return OUTSIDE if outside else 0 if found < column.edges[0] else column.bins - 1
    inner = column.edges[1:-1]
    return sum(edge <= found if column.closed == "left" else edge < found for edge in inner)


def moment_level(column, value) -> int:
    starts = column.starts
    if isinstance(value, str | int):
        value = written(column, str(value).strip(BLANKS))
        if value is None:
            return OUTSIDE
    if isinstance(value, datetime) and value.tzinfo is not None:
        starts = column.instants
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    place = sum(start <= value for start in starts)
    if 1 <= place < len(starts):
        return place - 1
    return OUTSIDE if column.beyond == "refuse" else 0 if place == 0 else len(starts) - 2


def written(column, text) -> datetime | None:
    """The local time or instant that a text writes; None if there is no such moment."""
    pattern = re.escape(column.format)
    for part, digits in (("YYYY", 4), ("MM", 2), ("DD", 2)):
        pattern = pattern.replace(part, f"(?P<{part}>[0-9]{{{digits}}})")
    clock = r"(?:[T ](?P<h>[01][0-9]|2[0-3]):(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9])(?:[.][0-9]{1,9})?)?" \
            r"(?P<zone>Z|[+-](?:0[0-9]|1[0-4]):?[0-5][0-9])?)?"  # fmt: skip
    found = re.fullmatch(pattern + ("" if isinstance(column, Date) else clock), text)
    if found is None:
        return None
    parts = found.groupdict()
    try:
        moment = datetime(int(parts["YYYY"]), int(parts["MM"]), int(parts["DD"]),
                          *(int(parts.get(unit) or 0) for unit in "hms"))  # fmt: skip
    except ValueError:
        return None
    zone = parts.get("zone")
    if not zone:
        return moment
    if column.time_zone is None:
        return None
    if zone == "Z":
        return moment.replace(tzinfo=UTC)
    shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return moment.replace(tzinfo=timezone(-shift if zone[0] == "-" else shift))
