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
_INSTANT = 2**45  # added to instants, to tell them from local times: both are below 2**39

END = "|"
END_PATTERN = "[|]$"
"""Put behind a text before it is matched: left to themselves, some engines let `$` match before a last line break."""

Position = Callable[[Callable[[Any], Any], Sequence[Any]], Any]


def period_of(column: Date | Datetime, value: Any, reading: Any, position: Position) -> Any:
    """The code of a moment's period, which `position` looks up; NULL where a text is no such moment.

    `reading` is what `seconds_of` makes of a text; other types are compared as they are.
    """
    import ibis

    kind = value.type()
    if kind.is_timestamp() and kind.timezone is not None:
        _refuse_without_zone(column)
        instants = [ibis.literal(instant, "timestamp('UTC')") for instant in column.instants]
        found = position(lambda start: value < start, instants)
    elif kind.is_timestamp() or kind.is_date():
        moment = value.cast("timestamp") if kind.is_date() else value
        found = position(lambda start: moment < start, [ibis.literal(start, "timestamp") for start in column.starts])
    else:
        found = position(lambda start: reading < start, [_seconds(start) for start in column.starts])
        if _may_have_offset(column):
            placed = position(lambda start: reading < start, [_seconds(start) + _INSTANT for start in column.instants])
            found = ibis.ifelse(reading < _INSTANT // 2, found, placed)
        found = ibis.ifelse(reading.isnull(), ibis.null("int32"), found)
    return found


def checked_moment(column: Date | Datetime, value: Any) -> Any:
    """A text that is written as the schema says, digit by digit; NULL where it is not."""
    import ibis

    if not (value.type().is_string() or value.type().is_integer()):
        raise DataError("type-not-supported", column.name)
    text = value.cast("string").strip()
    clock = _CLOCK if isinstance(column, Datetime) else ""
    fits = (text + END).re_search(f"^{_pattern(column.format)}{clock}{END_PATTERN}")
    if isinstance(column, Datetime) and column.time_zone is None:
        fits = fits & ~text.re_search("[Z]|[:0-9]{4}[+-][0-9]{2}:?[0-9]{2}$")
    return ibis.ifelse(fits, text, ibis.null("string"))


def parts_of(column: Date | Datetime, text: Any) -> dict[str, Any]:
    """The whole numbers that a checked text holds: year, month, day, seconds since midnight, seconds of the offset."""
    parts = {
        name: _digits(text, column.format.index(sign), len(sign))
        for name, sign in (("year", "YYYY"), ("month", "MM"), ("day", "DD"))
    }
    if isinstance(column, Datetime):
        parts["clock"] = _clock_seconds(text, len(column.format))
    if _may_have_offset(column):
        parts["offset"] = _offset_seconds(text, len(column.format))
    return parts


def seconds_of(column: Date | Datetime, parts: dict[str, Any]) -> Any:
    """Seconds since 1970, in UTC and raised by `_INSTANT` where the text had an offset; NULL where no such day is."""
    import ibis

    year, month, day = parts["year"], parts["month"], parts["day"]
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= _month_length(year, month))
    seconds = _days_since_1970(year, month, day) * _DAY_SECONDS
    if "clock" in parts:
        seconds = seconds + parts["clock"]
    if "offset" in parts:
        seconds = ibis.ifelse(parts["offset"].isnull(), seconds, seconds - parts["offset"] + _INSTANT)
    return ibis.ifelse(valid, seconds, ibis.null("int64"))


def _may_have_offset(column: Date | Datetime) -> bool:
    return isinstance(column, Datetime) and column.time_zone is not None


def _offset_seconds(text: Any, length: int) -> Any:
    """Seconds that the clock of a text is ahead of UTC; NULL for a local time."""
    import ibis

    zulu = text.endswith("Z")
    offset = text.re_search("[+-][0-9]{2}:?[0-9]{2}$") & (text.length() > length + 6)
    tail = ibis.ifelse(offset, text.re_replace(":", "").right(5), "+0000")
    ahead = (_digits(tail, 1, 2) * 60 + _digits(tail, 3, 2)) * 60
    return ibis.ifelse(zulu | offset, ibis.ifelse(tail.startswith("-"), -ahead, ahead), ibis.null("int64"))


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
