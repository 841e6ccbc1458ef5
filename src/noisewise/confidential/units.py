"""Units with several rows: how many of each are counted, and which.

A unit with more rows than declared is represented by some of them. Which ones depends on that unit's own rows alone:
they are put into an order by a digest of the unit's name and the row's level codes, and the first are taken. So no
unit can push another one's rows in or out, and every engine takes the same.
"""

from dataclasses import replace
from functools import reduce
from typing import Any

from noisewise.confidential.source import Source
from noisewise.errors import DataError


def parts_of(source: Source, unit: str | None) -> list[Source]:
    """The table in parts that the engine can sort, all rows of a unit in the same one."""
    if unit is None or source.rows_at_once is None:
        return [source]
    counted = source.run(source.backend.compile(source.table.aggregate(rows=source.table.count())))
    parts = 1 + int(counted[0, 0]) // source.rows_at_once
    place = (source.column(unit).hash() % parts).abs()
    return [source] if parts == 1 else [replace(source, table=source.table.filter(place == i)) for i in range(parts)]


def some_of_each_unit(coded: Any, name: str, most: int) -> Any:
    """At most `most` rows of each unit; `coded` has level codes, and the unit's own value as `unit`."""
    import ibis

    @ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
    def md5(text: str) -> str:  # type: ignore[empty-body]  # the engine's
        """The digest as hexadecimal digits, which every engine orders alike."""

    codes = [column for column in coded.columns if column != "unit"]
    text = reduce(lambda a, b: a + ":" + b, [_text(coded["unit"], name), *(coded[c].cast("string") for c in codes)])
    place = ibis.row_number().over(group_by=coded["unit"], order_by=[md5(text), *(coded[c] for c in codes)])
    ranked = coded.mutate(place=place)
    return ranked.filter(ranked["place"] < most).drop("place")


def _text(unit: Any, name: str) -> Any:
    """A unit's name as text, the same in every engine."""
    kind = unit.type()
    if kind.is_string() or kind.is_uuid() or kind.is_integer():
        return unit.cast("string")
    if kind.is_floating() or kind.is_decimal():
        return unit.cast("int64").cast("string")
    raise DataError("type-not-supported", name)
