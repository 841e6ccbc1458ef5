"""Many GROUP BYs in few scans: GROUPING SETS where the engine has them, else one query after the other."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from noisewise.confidential.joining import GroupingSet, Groups, joined, summed
from noisewise.confidential.source import Source
from noisewise.progress import Progress

SETS_PER_SCAN = {"duckdb": 64, "postgres": 16, "pyspark": 4}
"""How many tables one scan counts, where the engine can count several. docs/engines.md has the measurements."""

MAX_ANSWER = 20_000_000  # numbers of 8 bytes that one scan may return

_ABSENT = -9  # in place of the NULL of a column that a grouping set does not have; level codes are -2 or more


def grouped(
    source: Source, coded: Any, sets: Sequence[GroupingSet], sizes: Mapping[str, int], progress: Progress
) -> list[Groups]:
    """The groups of each set of columns of `coded`, in the order of the sets; `sizes` are the numbers of levels."""
    together = joined(sets, sizes)
    found = dict(zip(together, _counted(source, coded, together, sizes, progress), strict=True))
    homes = [next(columns for columns in together if {*wanted} <= {*columns}) for wanted in sets]
    return [summed(found[home], home, wanted) for home, wanted in zip(homes, sets, strict=True)]


def _counted(
    source: Source, coded: Any, sets: Sequence[GroupingSet], sizes: Mapping[str, int], progress: Progress
) -> list[Groups]:
    several = SETS_PER_SCAN.get(source.backend.name)
    if several is None:
        return [_one_by_one(coded, names) for names in sets]
    _tell_of_memory_tables(coded)
    query = source.backend.compile(coded)
    batches = _batches(sets, [prod(sizes[name] for name in columns) for columns in sets], several)
    if len(batches) > 1:
        query = source.hold(query)
    found: list[Groups] = []
    for batch in batches:

        def pulse(share: float, before: int = len(found), size: int = len(batch)) -> None:
            progress("counting", int(100 * (before + share * size) / len(sets)), 100)

        found += _together(source, query, batch, pulse)
    progress("counting", 100, 100)
    return found


def _batches(sets: Sequence[GroupingSet], cells: Sequence[int], several: int) -> list[list[GroupingSet]]:
    """As many sets at a time as the engine likes, but no more than whose answer fits: every group has all columns."""
    batches: list[list[GroupingSet]] = [[]]
    names: set[str] = set()
    groups = 0
    for columns, size in zip(sets, cells, strict=True):
        names, groups = names | {*columns}, groups + size
        if batches[-1] and (len(batches[-1]) == several or groups * (len(names) + 1) > MAX_ANSWER):
            batches.append([])
            names, groups = {*columns}, size
        batches[-1].append(columns)
    return batches


def _tell_of_memory_tables(coded: Any) -> None:
    """An owner's Ibis table may have parts in memory, of which Ibis tells the engine when it runs a query itself."""
    from ibis.expr.operations import InMemoryTable

    if coded.op().find(InMemoryTable):
        coded.limit(0).to_pyarrow()


def _together(source: Source, query: str, sets: Sequence[GroupingSet], pulse: Callable[[float], None]) -> list[Groups]:
    names = sorted({name for columns in sets for name in columns}, key=lambda name: (len(name), name))
    shown = ", ".join(f"COALESCE({name}, {_ABSENT})" for name in names)
    wanted = ", ".join(f"({', '.join(columns)})" for columns in sets)
    answer = source.run(f"SELECT {shown}, COUNT(*) FROM ({query}) AS coded GROUP BY GROUPING SETS ({wanted})", pulse)
    present = answer[:, :-1] != _ABSENT
    found = []
    for columns in sets:
        own = answer[(present == [name in columns for name in names]).all(axis=1)]
        found.append(Groups(codes=own[:, [names.index(name) for name in columns]], totals=own[:, -1]))
    return found


def _one_by_one(coded: Any, names: GroupingSet) -> Groups:
    answer = coded.group_by(list(names)).aggregate(total=coded.count()).to_pyarrow()
    codes = np.column_stack([answer[name].to_numpy() for name in names])
    return Groups(codes=codes, totals=answer["total"].to_numpy())
