"""The schema's rules as portable Ibis expressions over level codes: whether some row has what none can have."""

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from noisewise.schema import Rule, Schema


def columns_with_rules(schema: Schema, names: Sequence[str]) -> tuple[str, ...]:
    """Some columns and those that the rules speak of, in the schema's order: rules are checked whatever is counted."""
    return tuple(sorted({*names, *(name for rule in schema.rules for name in rule.columns)}, key=schema.index))


def broken(rule: Rule, schema: Schema, coded: Any, names: Sequence[str]) -> Any:
    """Whether any row breaks a rule; `coded` holds the level codes of `names` as v0, v1 and so on."""
    boxes = [[_among(coded, names, schema.names[column], codes) for column, codes in box] for box in rule.boxes(schema)]
    return reduce(or_, (reduce(and_, sides) for sides in boxes)).any()


def _among(coded: Any, names: Sequence[str], name: str, codes: tuple[int, ...]) -> Any:
    column = coded[f"v{names.index(name)}"]
    return column == codes[0] if len(codes) == 1 else column.isin(codes)
