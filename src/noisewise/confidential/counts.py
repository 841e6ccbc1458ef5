"""Exact counts of marginals, counted inside the engine.

Each wanted column becomes a column of level codes, and all marginals of them are counted together. A row that may not
be counted has a code below zero, which its groups show: counting and checking are the same scan. Only codes and counts
come back from the engine, never a row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from noisewise.confidential.boundary import private_files
from noisewise.confidential.codes import level_codes
from noisewise.confidential.grouping import grouped
from noisewise.confidential.joining import Groups, added
from noisewise.confidential.readings import FORBIDDEN, OUTSIDE
from noisewise.confidential.refusals import Fault, fault_number, faults_of
from noisewise.confidential.source import Source
from noisewise.confidential.sources import opened
from noisewise.confidential.units import parts_of, some_of_each_unit
from noisewise.confidential.withheld import withheld
from noisewise.errors import DataError
from noisewise.progress import Progress, silent
from noisewise.schema import Schema
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExactCounts:
    """Exact counts: secret. It prints as nothing and cannot be pickled."""

    rows: int
    """Number of rows that were counted; public."""
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
    progress: Progress = silent,
) -> ExactCounts:
    """Count the marginals of a confidential table exactly.

    Columns that neither the marginals nor the schema's rules name are not read. With `unit`, at most
    `max_rows_per_unit` rows of each unit are counted, chosen without a look at any other unit. A table that does not
    fit the schema is refused here, where it costs no privacy.
    """
    wanted = tuple(dict.fromkeys(marginals))
    ruled = {name for rule in schema.rules for name in rule.columns}
    names = tuple(sorted({name for marginal in wanted for name in marginal} | ruled, key=schema.index))
    faults = faults_of(schema, unit)
    sets = [tuple(f"v{names.index(name)}" for name in marginal) for marginal in wanted]
    with private_files(), opened(data) as source:
        asked = [("fault",), *sets] if faults else sets
        sizes = {f"v{i}": schema.column(name).size for i, name in enumerate(names)} | {"fault": len(faults) + 1}
        parts = withheld(lambda: parts_of(source, unit), source.failure)

        def of_part(number: int) -> list[Groups]:
            def share(what: str, done: int, total: int) -> None:
                progress(what, int(100 * (number + done / total) / len(parts)), 100)

            coded = _coded(parts[number], schema, names, faults, unit, max_rows_per_unit)
            return grouped(parts[number], coded, asked, sizes, share)

        found = [withheld(partial(of_part, number), source.failure) for number in range(len(parts))]
    groups = [added(of_set) for of_set in zip(*found, strict=True)]
    marginal_groups = dict(zip(wanted, groups[-len(wanted) :], strict=True))
    return withheld(lambda: _checked(schema, marginal_groups, groups, faults), "engine-failed")


def _coded(
    source: Source,
    schema: Schema,
    names: tuple[str, ...],
    faults: list[Fault],
    unit: str | None,
    max_rows_per_unit: int,
) -> Any:
    """One column of level codes per wanted column, v0, v1, …, and the number of the row's fault, 0 for none."""
    values = {f"v{i}": source.column(name) for i, name in enumerate(names)}
    keep = {} if unit is None else {"unit": source.column(unit)}
    columns = {f"v{i}": schema.column(name) for i, name in enumerate(names)}
    coded = level_codes(source.table.select(**values, **keep), columns, tuple(keep))
    if unit is not None:
        coded = some_of_each_unit(coded, unit, max_rows_per_unit)
    position = {schema.index(name): f"v{i}" for i, name in enumerate(names)}
    return coded.mutate(fault=fault_number(coded, faults, position)) if faults else coded


def _checked(
    schema: Schema, marginals: dict[Marginal, Groups], groups: list[Groups], faults: list[Fault]
) -> ExactCounts:
    """The counts as tables, unless some row is a reason to refuse them all."""
    rows = int(groups[0].totals.sum())
    if not rows:
        raise DataError("table-empty")
    if any(int(found.totals.sum()) != rows for found in groups):
        raise DataError("table-changed")
    lowest = dict.fromkeys(schema.names, 0)
    for marginal, found in marginals.items():
        for name, codes in zip(marginal, found.codes.T, strict=True):
            lowest[name] = min(lowest[name], int(codes.min()))
    for name, code in lowest.items():
        if code in (FORBIDDEN, OUTSIDE):
            raise DataError("missing-forbidden" if code == FORBIDDEN else "value-outside-schema", name)
    if faults and groups[0].codes.any():
        first = faults[int(groups[0].codes[groups[0].codes > 0].min()) - 1]
        raise DataError(first.code, first.column)
    return ExactCounts(
        rows=rows, tables={marginal: _table(schema, marginal, found) for marginal, found in marginals.items()}
    )


def _table(schema: Schema, marginal: Marginal, found: Groups) -> np.ndarray:
    counts = np.zeros(schema.shape(marginal), dtype=np.int64)
    counts[tuple(found.codes.T)] = found.totals
    return counts
