"""Dates and points in time, as portable Ibis expressions: which period a value falls into.

Texts are taken apart and computed with as whole numbers. Engines parse dates in their own ways: some fail on
30 February and quote the record, some make it 1 March; offsets of time zones are dropped by one and heeded by another.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from noisewise.errors import DataError
from noisewise.schema import Date, Datetime, Moments

_CLOCK = r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[+-](0[0-9]|1[0-4]):?[0-5][0-9])?)?"
_DAY_SECONDS = 86_400

Position = Callable[[Callable[[Any], Any], Sequence[Any]], Any]


def period_of(column: Date | Datetime, value: Any, position: Position) -> Any:
    """0 before the first period, 1 in the first, …, one past the last after it; NULL where a text is no such moment."""
    kind = value.type()
    if kind.is_timestamp() and kind.timezone is not None:
        return _among_instants(column, value, position)
    if kind.is_timestamp() or kind.is_date():
        return _among_local(column, value, position)
    if kind.is_string() or kind.is_integer():
        return _text_period(column, value.cast("string").strip(), position)
    raise DataError("type-not-supported", column.name)


def _among_instants(column: Moments, value: Any, position: Position) -> Any:
    import ibis

    _refuse_without_zone(column)
    instants = [ibis.literal(instant, "timestamp('UTC')") for instant in column.instants]
    return ibis.ifelse(value.isnull(), ibis.null("int32"), position(lambda start: value < start, instants))


def _among_local(column: Moments, value: Any, position: Position) -> Any:
    import ibis

    starts: list[Any]
    if value.type().is_date():
        value = value.cast("timestamp")
    starts = [ibis.literal(start, "timestamp") for start in column.starts]
    return ibis.ifelse(value.isnull(), ibis.null("int32"), position(lambda start: value < start, starts))


def _text_period(column: Date | Datetime, text: Any, position: Position) -> Any:
    """Seconds since 1970 from the digits of a text; those of the offset are taken away where there is one."""
    import ibis

    length = len(column.format)
    clock = _CLOCK if isinstance(column, Datetime) else ""
    fits = text.re_search(f"^{_pattern(column.format)}{clock}$")
    clean = ibis.ifelse(fits, text, ibis.null("string"))
    year, month, day = (_digits(clean, column.format.index(part), len(part)) for part in ("YYYY", "MM", "DD"))
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= _month_length(year, month))
    seconds = _days_since_1970(year, month, day) * _DAY_SECONDS
    local = position(lambda start: seconds < start, [_seconds(start) for start in column.starts])
    if isinstance(column, Datetime):
        seconds = seconds + _clock_seconds(clean, length)
        local = position(lambda start: seconds < start, [_seconds(start) for start in column.starts])
        local = _with_offset(column, clean, seconds, local, position)
    return ibis.ifelse(valid, local, ibis.null("int32"))


def _with_offset(column: Datetime, text: Any, seconds: Any, local: Any, position: Position) -> Any:
    """A text with an offset is an instant; without a declared time zone it cannot be placed, and is outside."""
    import ibis

    zulu = text.endswith("Z")
    offset = text.re_search("[+-][0-9]{2}:?[0-9]{2}$") & (text.length() > len(column.format) + 6)
    if column.time_zone is None:
        return ibis.ifelse(zulu | offset, ibis.null("int32"), local)
    tail = ibis.ifelse(offset, text.re_replace(":", "").right(5), "+0000")
    shift = (_digits(tail, 1, 2) * 60 + _digits(tail, 3, 2)) * 60
    instant = ibis.ifelse(tail.startswith("-"), seconds + shift, seconds - shift)
    placed = position(lambda start: instant < start, [_seconds(start) for start in column.instants])
    return ibis.ifelse(zulu | offset, placed, local)


def _refuse_without_zone(column: Moments) -> None:
    if column.time_zone is None:
        raise DataError("time-zone-missing", column.name)


def _pattern(form: str) -> str:
    parts = {"Y": "[0-9]", "M": "[0-9]", "D": "[0-9]"}
    return "".join(parts.get(sign, f"[{sign}]" if sign not in "\\^]" else f"\\{sign}") for sign in form)


def _digits(text: Any, start: int, length: int) -> Any:
    return text.substr(start, length).cast("int64")


def _clock_seconds(text: Any, start: int) -> Any:
    """The seconds since midnight of the clock that follows the day, without their fraction; 0 without a clock."""
    import ibis

    has_clock = text.length() > start
    clock = ibis.ifelse(has_clock, text, text.concat("T00:00"))
    has_seconds = clock.re_search("[T ][0-9]{2}:[0-9]{2}:[0-9]{2}")
    seconds = ibis.ifelse(has_seconds, clock.substr(start + 7, 2), "00").cast("int64")
    return _digits(clock, start + 1, 2) * 3600 + _digits(clock, start + 4, 2) * 60 + seconds


def _days_since_1970(year: Any, month: Any, day: Any) -> Any:
    """The number of a day in the Gregorian calendar, counted in years that begin in March: leap days come last."""
    import ibis

    late = month <= 2
    y = year - ibis.ifelse(late, 1, 0)
    m = month + ibis.ifelse(late, 9, -3)
    return (
        365 * y
        + _whole_part(y, 4)
        - _whole_part(y, 100)
        + _whole_part(y, 400)
        + _whole_part(153 * m + 2, 5)
        + day
        - 719_469
    )


def _whole_part(value: Any, divisor: int) -> Any:
    """Division of whole numbers that are not negative, without what engines make of `/`."""
    return ((value - value % divisor) / divisor).cast("int64")


def _month_length(year: Any, month: Any) -> Any:
    import ibis

    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    return ibis.cases(
        (month == 2, ibis.ifelse(leap, 29, 28)), (month.isin((4, 6, 9, 11)), ibis.literal(30)), else_=ibis.literal(31)
    )


def _seconds(moment: datetime) -> int:
    """Seconds since 1970 of a local time taken as it stands, or of an instant."""
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
