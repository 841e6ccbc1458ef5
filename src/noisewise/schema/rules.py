"""Rules: combinations of levels that cannot occur, known publicly and true of every row there is or will be.

A rule is a set of boxes: for each of some columns a set of levels, and no row has them all at once. Rules cost no
privacy, because they are written from public knowledge and not read off the table.
"""

import re
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, StrictStr, model_validator

from noisewise.errors import did_you_mean
from noisewise.schema.bought import QuantileNumeric
from noisewise.schema.column import ColumnKind, number_text
from noisewise.schema.numeric import Numeric

if TYPE_CHECKING:
    from noisewise.schema.table import Schema

Box = tuple[tuple[int, tuple[int, ...]], ...]
"""Positions of columns, ascending, each with some of its level codes: no row has one of them in every column."""

_INTERVAL = re.compile(r"([\[(])\s*([^,]+?)\s*,\s*([^,]+?)\s*([\])])")


class Except(BaseModel):
    """All levels of a column but some: { not = "single" }."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    but: StrictStr | tuple[StrictStr, ...] = Field(alias="not")
    """A label, or several."""


Levels = StrictStr | tuple[StrictStr, ...] | Except


class Rule(BaseModel):
    """Combinations that cannot occur: either `impossible`, or `column`, `by` and `levels`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    impossible: dict[str, Levels] | None = None
    """Columns with a label, several labels, or { not = … }: no row has them all at once."""
    column: StrictStr | None = None
    """A column that is determined by another one."""
    by: StrictStr | None = None
    """The column that determines it."""
    levels: dict[str, tuple[StrictStr, ...]] | None = None
    """For each label of `column` the labels of `by` that lead to it. Every label of `by` is named exactly once."""
    description: StrictStr = ""
    """For people: why it is so. Not used."""

    @model_validator(mode="after")
    def _check(self) -> "Rule":
        parts = (self.column, self.by, self.levels)
        determined = all(part is not None for part in parts)
        if (self.impossible is None) != determined or (self.impossible is not None and any(parts)):
            raise ValueError("a rule declares either `impossible`, or `column`, `by` and `levels`.")
        if self.impossible is not None and len(self.impossible) < 2:
            raise ValueError("`impossible` names one column. Leave the level out of the schema, or name two columns.")
        if determined and self.column == self.by:
            raise ValueError("a column cannot determine itself. Name two columns.")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the rule speaks of."""
        if self.impossible is not None:
            return tuple(self.impossible)
        return tuple(name for name in (self.by, self.column) if name is not None)

    def boxes(self, schema: "Schema") -> tuple[Box, ...]:
        """The impossible combinations as level codes; a ValueError if a label is not the schema's."""
        if self.impossible is not None:
            given = {name: codes_of(schema.column(name), levels) for name, levels in self.impossible.items()}
            return _boxes([given], schema)
        return _boxes(self._determined(schema), schema)

    def _determined(self, schema: "Schema") -> list[dict[str, tuple[int, ...]]]:
        assert self.column is not None  # checked
        assert self.by is not None
        assert self.levels is not None
        target, source = schema.column(self.column), schema.column(self.by)
        chosen = {codes_of(target, label): codes_of(source, labels) for label, labels in self.levels.items()}
        named = sorted(code for codes in chosen.values() for code in codes)
        if named != list(range(source.size)):
            wrong = [label for code, label in enumerate(source.labels) if named.count(code) != 1]
            raise ValueError(f"every label of {self.by!r} must lead to one of {self.column!r}; look at {wrong[0]!r}.")
        return [
            {self.by: codes, self.column: tuple(c for c in range(target.size) if c not in own)}
            for own, codes in chosen.items()
        ]


def _boxes(given: list[dict[str, tuple[int, ...]]], schema: "Schema") -> tuple[Box, ...]:
    boxes = (tuple(sorted((schema.index(name), codes) for name, codes in box.items())) for box in given)
    return tuple(box for box in boxes if all(codes for _, codes in box))


def codes_of(column: ColumnKind, levels: Levels) -> tuple[int, ...]:
    """The codes of a label, of several, or of all but some; an interval may join several bins of a number."""
    if isinstance(column, QuantileNumeric):
        raise ValueError(f"the edges of {column.name!r} are bought, so no rule can name its bins. Declare edges.")
    if isinstance(levels, Except):
        excluded = codes_of(column, levels.but)
        return tuple(code for code in range(column.size) if code not in excluded)
    labels = (levels,) if isinstance(levels, str) else levels
    return tuple(sorted({code for label in labels for code in _codes_of_one(column, label)}))


def _codes_of_one(column: ColumnKind, label: str) -> tuple[int, ...]:
    if label in column.labels:
        return (column.labels.index(label),)
    interval = _INTERVAL.fullmatch(label.strip())
    if isinstance(column, Numeric) and interval is not None:
        return _codes_between(column, interval)
    raise ValueError(f"{label!r} is not a level of {column.name!r}. {did_you_mean(label, column.labels)}")


def _codes_between(column: Numeric, interval: re.Match[str]) -> tuple[int, ...]:
    """The bins that an interval joins; it must begin and end where bins do, and be closed as they are."""
    bins = [_INTERVAL.fullmatch(label) for label in column.labels[: column.bins]]
    lows, highs = [b and b.group(1, 2) for b in bins], [b and b.group(3, 4) for b in bins]
    left, low, high, right = interval.groups()
    try:
        first = lows.index((left, number_text(float(low))))
        last = highs.index((number_text(float(high)), right))
    except ValueError:
        first, last = 1, 0
    if first > last:
        raise ValueError(
            f"{interval.group()!r} does not begin and end where bins of {column.name!r} do. "
            f"Its bins are {', '.join(column.labels[: column.bins])}."
        )
    return tuple(range(first, last + 1))
