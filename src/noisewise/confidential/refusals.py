"""What may be wrong with a row as a whole: it lies where a rule says that none can, or belongs to no unit."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from noisewise.schema import Box, Schema


@dataclass(frozen=True)
class Fault:
    """A reason to refuse the table because of a row that no single level code shows."""

    code: str
    """The code of the error."""
    column: str
    """The column the error names."""
    box: Box | None = None
    """The combinations that cannot occur; None for a row whose unit is missing."""


def faults_of(schema: Schema, unit: str | None) -> list[Fault]:
    """What may be wrong, in an order that decides which fault of a row is told."""
    broken = [Fault("rule-broken", schema.names[box[0][0]], box) for box in schema.impossible]
    return broken if unit is None else [*broken, Fault("missing-forbidden", unit)]


def fault_number(coded: Any, faults: list[Fault], position: Mapping[int, str]) -> Any:
    """The number of a row's first fault, counted from 1; 0 without any."""
    import ibis

    conditions = [
        coded["unit"].isnull()
        if fault.box is None
        else reduce(lambda a, b: a & b, [coded[position[column]].isin(codes) for column, codes in fault.box])
        for fault in faults
    ]
    numbered = ((condition, ibis.literal(number + 1, "int32")) for number, condition in enumerate(conditions))
    return ibis.cases(*numbered, else_=ibis.literal(0, "int32"))
