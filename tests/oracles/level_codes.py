"""Which level a source value belongs to, value by value in plain Python: slow, obvious, and knows no SQL."""

from datetime import date, datetime, time
from zoneinfo import ZoneInfo

from noisewise.schema import Boolean, Categorical, Date, Datetime, Numeric

OUTSIDE, FORBIDDEN = -1, -2


def code_of(column, value) -> int:
    """The level code of a value (a text, a number, a date, a moment, a truth value, or None)."""
    if _is_missing(column, value):
        return len(column.labels) - 1 if column.missing == "category" else FORBIDDEN
    if isinstance(column, Categorical):
        return _category(column, value)
    if isinstance(column, Boolean):
        return _truth(column, value)
    if isinstance(column, Numeric):
        return _bin(column, value)
    return _period(column, value)


def _is_missing(column, value) -> bool:
    if value is None or str(value) == "nan" or str(value) in column.missing_values:
        return True
    return isinstance(column, Numeric | Boolean) and str(value).strip().lower() in ("", "nan")


def _category(column: Categorical, value) -> int:
    for code, label in enumerate(column.declared_labels):
        if str(value) == label or str(value) in map(str, column.fold.get(label, ())):
            return code
    return OUTSIDE if column.other is None else column.declared_labels.index(column.other)


def _truth(column: Boolean, value) -> int:
    text = str(value).strip()
    if text.lower() in ("false", "0") or text in column.false_values:
        return 0
    return 1 if text.lower() in ("true", "1") or text in column.true_values else OUTSIDE


def _bin(column: Numeric, value) -> int:
    if str(value) in column.codes:
        return column.bins + column.codes.index(str(value))
    try:
        number = float(value)
    except ValueError:
        return OUTSIDE
    edges, last = column.edges, column.bins - 1
    if number < edges[0] or number > edges[-1]:
        return OUTSIDE if column.beyond == "refuse" else (0 if number < edges[0] else last)
    inner = edges[1:-1]
    return sum(edge <= number if column.closed == "left" else edge < number for edge in inner)


def _period(column: Date | Datetime, value) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return OUTSIDE
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if value.tzinfo is not None:
        starts = [start.replace(tzinfo=ZoneInfo(column.time_zone)).timestamp() for start in column.starts]
        value = value.timestamp()
    else:
        starts = column.starts
    found = sum(start <= value for start in starts)
    if found == 0:
        return OUTSIDE if column.beyond == "refuse" else 0
    if found == len(starts):
        return OUTSIDE if column.beyond == "refuse" else len(starts) - 2
    return found - 1
