"""What may be wrong with a row as a whole: it lies where a rule says that none can, or belongs to no unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

from noisewise.schema import Box, Schema


@dataclass(frozen=True)
class Fault:
    """A reason to refuse the table because of a row that no single level code shows."""

    code: str
    """The code of the error."""
    column: str
    """The column, or columns, that the error names."""
    boxes: tuple[Box, ...] = ()
    """The combinations that cannot occur; none for a row whose unit is missing."""


def faults_of(schema: Schema, unit: str | None) -> list[Fault]:
    """What may be wrong, in an order that decides which fault of a row is told."""
    boxes = [(" × ".join(rule.columns), rule.boxes(schema)) for rule in schema.rules]
    broken = [Fault("rule-broken", columns, found) for columns, found in boxes if found]
    return broken if unit is None else [*broken, Fault("missing-forbidden", unit)]


def fault_number(coded: Any, faults: list[Fault], position: Mapping[int, str]) -> Any:
    """The number of a row's first fault, counted from 1; 0 without any."""
    import ibis

    conditions = [_any_box(coded, fault, position) if fault.boxes else coded["unit"].isnull() for fault in faults]
    numbered = ((condition, ibis.literal(number + 1, "int32")) for number, condition in enumerate(conditions))
    return ibis.cases(*numbered, else_=ibis.literal(0, "int32"))


def _any_box(coded: Any, fault: Fault, position: Mapping[int, str]) -> Any:
    sides = ([coded[position[column]].isin(codes) for column, codes in box] for box in fault.boxes)
    return reduce(or_, (reduce(and_, box) for box in sides))
