"""Exact counts of marginals: one pass that checks the table, then one GROUP BY per marginal inside the engine.

Only cell numbers and counts come back from the engine, never a row.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from noisewise.confidential.boundary import private_files
from noisewise.confidential.codes import FORBIDDEN, OUTSIDE, level_code
from noisewise.confidential.rules import broken, columns_with_rules
from noisewise.confidential.source import Source
from noisewise.confidential.sources import opened
from noisewise.confidential.withheld import withheld
from noisewise.errors import DataError
from noisewise.schema import Schema
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExactCounts:
    """Exact counts: secret. It prints as nothing and cannot be pickled."""

    rows: int
    """Number of rows; public."""
    tables: dict[Marginal, np.ndarray]
    """Counts of each marginal as int64, one axis per column."""

    def __repr__(self) -> str:
        return "<exact counts: confidential>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact counts are confidential and are never pickled.")


def count(
    data: Any,
    schema: Schema,
    marginals: Iterable[Marginal],
    unit: str | None = None,
    max_rows_per_unit: int = 1,
) -> ExactCounts:
    """Count the marginals of a confidential table exactly.

    Columns that neither a marginal nor a rule of the schema names are not read. With `unit`, the table is refused when
    any unit has more than `max_rows_per_unit` rows. The checks come first, so that a table which does not fit costs
    no privacy.
    """
    wanted = tuple(marginals)
    names = columns_with_rules(schema, [name for marginal in wanted for name in marginal])
    with private_files(), opened(data) as source:
        coded = withheld(lambda: _coded(source, schema, names), source.failure)
        rows = withheld(lambda: _check(source, coded, schema, names), source.failure)
        if unit is not None:
            withheld(lambda: _check_units(source, unit, max_rows_per_unit), "engine-failed")
        tables = {m: withheld(partial(_count_one, source, coded, schema, names, m), "engine-failed") for m in wanted}
    if any(int(table.sum()) != rows for table in tables.values()):
        raise DataError("table-changed")
    return ExactCounts(rows=rows, tables=tables)


def _coded(source: Source, schema: Schema, names: tuple[str, ...]) -> Any:
    """One column of level codes per wanted column: v0, v1, … In an embedded engine they are computed once."""
    codes = {f"v{i}": level_code(schema.column(name), source.column(name)) for i, name in enumerate(names)}
    return source.table.select(**codes)


def _check(source: Source, coded: Any, schema: Schema, names: tuple[str, ...]) -> int:
    signs: dict[str, Any] = {}
    for i in range(len(names)):
        signs |= {
            f"outside{i}": (coded[f"v{i}"] == OUTSIDE).any(),
            f"forbidden{i}": (coded[f"v{i}"] == FORBIDDEN).any(),
        }
    for i, rule in enumerate(schema.rules):
        if rule.boxes(schema):
            signs[f"broken{i}"] = broken(rule, schema, coded, names)
    verdict = source.ask(coded.aggregate(rows=coded.count(), **signs)).to_pylist()[0]
    if not verdict["rows"]:
        raise DataError("table-empty")
    for i, name in enumerate(names):
        if verdict[f"forbidden{i}"]:
            raise DataError("missing-forbidden", name)
        if verdict[f"outside{i}"]:
            raise DataError("value-outside-schema", name)
    for i, rule in enumerate(schema.rules):
        if verdict.get(f"broken{i}"):
            raise DataError("rule-broken", " × ".join(rule.columns))
    return int(verdict["rows"])


def _check_units(source: Source, unit: str, max_rows_per_unit: int) -> None:
    units = source.table.select(unit=source.column(unit))
    sizes = units.group_by("unit").aggregate(size=units.count())
    if source.ask(sizes.aggregate(largest=sizes["size"].max()))["largest"][0].as_py() > max_rows_per_unit:
        raise DataError("unit-too-large", unit)


def _count_one(source: Source, coded: Any, schema: Schema, names: tuple[str, ...], marginal: Marginal) -> np.ndarray:
    """One GROUP BY on the cell's number, which is what the engine returns with its count."""
    shape = schema.shape(marginal)
    cell: Any = 0
    for name, size in zip(marginal, shape, strict=True):
        cell = cell * size + coded[f"v{names.index(name)}"].cast("int64")
    numbered = coded.select(cell=cell)
    grouped = source.ask(numbered.group_by("cell").aggregate(total=numbered.count()))
    counts = np.zeros(math.prod(shape), dtype=np.int64)
    counts[grouped["cell"].to_numpy()] = grouped["total"].to_numpy()
    return counts.reshape(shape)
