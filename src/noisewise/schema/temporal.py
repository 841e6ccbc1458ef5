"""Columns of dates and of points in time: counted in periods, released as a day or a second of the period."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
from pydantic import StrictStr, field_validator, model_validator

from noisewise.schema.column import ColumnKind, uniforms

MAX_PERIODS = 10_000

Period = Literal["hour", "day", "week", "month", "quarter", "year"]
ReleasedAs = Literal["middle", "start", "uniform"]


class Moments(ColumnKind):
    """What dates and points in time have in common: periods, each closed at its start and open at its end."""

    first: date | None = None
    """The first day that may occur; with `period`."""
    last: date | None = None
    """The last day that may occur; with `period`."""
    period: Period | None = None
    """Count by "day", "week" (from Monday), "month", "quarter" or "year"; a datetime also by "hour"."""
    beyond: Literal["refuse", "end-bins"] = "refuse"
    """What to do with values outside: refuse the table, or count them in the first and last period."""
    released_as: ReleasedAs = "middle"
    """What stands for a period in synthetic rows: its middle, its start, or a moment drawn evenly from within it."""
    time_zone: StrictStr | None = None
    """The zone in which the periods are meant, such as "Europe/Helsinki"; needed where the source stores instants."""
    format: StrictStr = "YYYY-MM-DD"
    """How texts write the day: YYYY, MM and DD in any order and with any signs between them."""

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        try:
            if name is not None:
                ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f'there is no time zone {name!r}. Write it as in "Europe/Helsinki", or "UTC".') from None
        return name

    @field_validator("format")
    @classmethod
    def _whole_format(cls, text: str) -> str:
        if any(text.count(part) != 1 for part in ("YYYY", "MM", "DD")) or len(text) > 20:
            raise ValueError(f'format {text!r} must hold YYYY, MM and DD once each, such as "DD.MM.YYYY".')
        return text

    @property
    def starts(self) -> tuple[datetime, ...]:
        """Where the periods begin, as local times, and where the last one ends."""
        raise NotImplementedError

    @property
    def instants(self) -> tuple[datetime, ...]:
        """`starts` as instants in UTC. At a change of clocks they are kept from running backwards."""
        zone = ZoneInfo(self.time_zone or "UTC")
        found: list[datetime] = []
        for local in self.starts:
            instant = local.replace(tzinfo=zone).astimezone(UTC)
            found.append(max(instant, found[-1]) if found else instant)
        return tuple(found)

    @property
    def declared_labels(self) -> tuple[str, ...]:
        return tuple(self._label(low, high) for low, high in pairwise(self.starts))

    def _label(self, low: datetime, high: datetime) -> str:
        names = {"year": f"{low:%Y}", "quarter": f"{low:%Y}-Q{(low.month + 2) // 3}", "month": f"{low:%Y-%m}"}
        names |= {"day": f"{low:%Y-%m-%d}", "hour": f"{low:%Y-%m-%d %H}h"}
        return names.get(self.period or "", f"{_written(low)} to {_written(_closed_end(low, high))}")

    def _check_periods(self, explicit: bool) -> None:
        given = [self.period is not None, self.first is not None, self.last is not None]
        if explicit == any(given) or (not explicit and not all(given)):
            raise ValueError("declare `first`, `last` and `period`, or `edges` instead.")
        if self.first is not None and self.last is not None and self.first > self.last:
            raise ValueError("`first` is after `last`. Exchange them.")
        starts = self.starts
        if len(starts) < 2 or any(low >= high for low, high in pairwise(starts)):
            raise ValueError("edges must increase, and there must be at least two. Correct them.")
        if len(starts) > MAX_PERIODS + 1:
            raise ValueError(f"there are more than {MAX_PERIODS:,} periods. Choose longer ones.")

    def _regular(self) -> tuple[datetime, ...]:
        """The first day, the starts of the periods after it, and the day after the last."""
        assert self.first is not None  # checked
        assert self.last is not None
        assert self.period is not None
        end = datetime.combine(self.last, time()) + timedelta(days=1)
        starts = [datetime.combine(self.first, time())]
        while (following := _next(starts[-1], self.period)) < end and len(starts) <= MAX_PERIODS + 1:
            starts.append(following)
        return (*starts, end)


class Date(Moments):
    """A day, counted in days, weeks, months, quarters, years or periods between declared edges."""

    type: Literal["date"] = "date"
    """The kind of column."""
    edges: tuple[date, ...] = ()
    """Where periods begin, instead of `first`, `last` and `period`; the last is the day after the last period."""

    @model_validator(mode="after")
    def _check(self) -> "Date":
        if self.period == "hour":
            raise ValueError('a date has no hours. Use type = "datetime", or a longer period.')
        self._check_periods(bool(self.edges))
        return self

    @property
    def starts(self) -> tuple[datetime, ...]:
        if self.edges:
            return tuple(datetime.combine(edge, time()) for edge in self.edges)
        return self._regular()

    @property
    def released_type(self) -> pa.DataType:
        return pa.date32()

    def declared_values(self) -> pa.Array:
        first, count = self._days()
        chosen = first if self.released_as == "start" else first + (count - 1) // 2
        return pa.array(chosen.astype(np.int32), pa.int32()).cast(pa.date32())

    def decode(self, codes: np.ndarray, stream: np.random.Generator | None = None) -> pa.Array:
        if self.released_as != "uniform":
            return super().decode(codes)
        first, count = self._days()
        period = np.minimum(codes, len(first) - 1).astype(np.intp)
        later = (uniforms(stream, len(codes)) * count[period]).astype(np.int64)
        days = first[period] + np.minimum(later, count[period] - 1)
        return pa.array(days.astype(np.int32), pa.int32(), mask=codes >= len(first)).cast(pa.date32())

    def _days(self) -> tuple[np.ndarray, np.ndarray]:
        """The first day of each period, in days since 1970, and its number of days."""
        days = np.array([start.date().toordinal() for start in self.starts]) - date(1970, 1, 1).toordinal()
        return days[:-1], np.diff(days)


class Datetime(Moments):
    """A point in time, counted in periods and released to the second, in the declared time zone if there is one."""

    type: Literal["datetime"] = "datetime"
    """The kind of column."""
    edges: tuple[datetime, ...] = ()
    """Where periods begin, in local time, instead of `first`, `last` and `period`; the last is the end of the last."""

    @field_validator("edges")
    @classmethod
    def _local(cls, edges: tuple[datetime, ...]) -> tuple[datetime, ...]:
        if any(edge.tzinfo is not None or edge.microsecond for edge in edges):
            raise ValueError("edges are local times in whole seconds, without an offset. Declare `time_zone` instead.")
        return edges

    @model_validator(mode="after")
    def _check(self) -> "Datetime":
        self._check_periods(bool(self.edges))
        return self

    @property
    def starts(self) -> tuple[datetime, ...]:
        return self.edges or self._regular()

    @property
    def released_type(self) -> pa.DataType:
        return pa.timestamp("us", tz=self.time_zone)

    def declared_values(self) -> pa.Array:
        first, count = self._seconds()
        chosen = first if self.released_as == "start" else first + count // 2
        return self._moments(chosen, None)

    def decode(self, codes: np.ndarray, stream: np.random.Generator | None = None) -> pa.Array:
        if self.released_as != "uniform":
            return super().decode(codes)
        first, count = self._seconds()
        period = np.minimum(codes, len(first) - 1).astype(np.intp)
        later = (uniforms(stream, len(codes)) * count[period]).astype(np.int64)
        return self._moments(first[period] + np.minimum(later, np.maximum(count[period] - 1, 0)), codes >= len(first))

    def _seconds(self) -> tuple[np.ndarray, np.ndarray]:
        """The first second of each period, since 1970, and its number of seconds."""
        moments = self.instants  # without a time zone local times are taken as they stand
        seconds = np.array([int(moment.timestamp()) for moment in moments])
        return seconds[:-1], np.diff(seconds)

    def _moments(self, seconds: np.ndarray, null: np.ndarray | None) -> pa.Array:
        return pa.array(seconds * 1_000_000, pa.int64(), mask=null).cast(self.released_type)


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}" if moment.time() == time() else moment.isoformat(" ")


def _closed_end(low: datetime, high: datetime) -> datetime:
    """The last day of a period of whole days; of any other the moment that ends it."""
    return high - timedelta(days=1) if low.time() == high.time() == time() else high


def _next(start: datetime, period: Period) -> datetime:
    """The start of the period after the one that holds `start`."""
    day = datetime.combine(start, time())
    if period == "hour":
        return start + timedelta(hours=1)
    if period == "day":
        return day + timedelta(days=1)
    if period == "week":
        return day + timedelta(days=7 - day.weekday())
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    number = day.year * 12 + (day.month - 1) // months * months + months
    return datetime(number // 12, number % 12 + 1, 1)
