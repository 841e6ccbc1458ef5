"""Marginals that share columns are counted as one: a larger table is counted, and summed to each of them.

What a scan costs grows with the number of tables it counts. A table that is not much larger than the marginals it
holds costs an engine no more than one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

GroupingSet = tuple[str, ...]

MOST_CELLS = 4096
"""Cells of a table that marginals are joined to: few enough for the fast memory of a processor."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Groups:
    """The groups of one grouping set. Secret."""

    codes: np.ndarray
    """One row per group, one column per column of the set."""
    totals: np.ndarray
    """How many rows each group has."""


def joined(sets: Sequence[GroupingSet], sizes: Mapping[str, int]) -> list[GroupingSet]:
    """Sets of columns to count, such that each of `sets` is part of one; `sizes` are the columns' numbers of levels.

    The largest come first; each goes to the set that grows least by it, among those that share a column with it and
    stay small enough.
    """

    def cells(columns: frozenset[str]) -> int:
        return prod(sizes[column] for column in columns)

    found: list[frozenset[str]] = []
    for wanted in sorted(map(frozenset, sets), key=lambda columns: (-cells(columns), sorted(columns))):
        fitting = [
            (cells(wanted | columns) - cells(columns), place)
            for place, columns in enumerate(found)
            if wanted <= columns or (wanted & columns and cells(wanted | columns) <= MOST_CELLS)
        ]
        if fitting:
            place = min(fitting)[1]
            found[place] |= wanted
        else:
            found.append(wanted)
    return [tuple(sorted(columns, key=lambda name: (len(name), name))) for columns in found]


def summed(groups: Groups, columns: GroupingSet, wanted: GroupingSet) -> Groups:
    """The groups of some of the columns: those that differ in others only become one."""
    codes = groups.codes[:, [columns.index(name) for name in wanted]]
    if len(wanted) == len(columns):
        return Groups(codes=codes, totals=groups.totals)
    return _one_of_each(codes, groups.totals)


def added(parts: Sequence[Groups]) -> Groups:
    """The groups of one grouping set over all parts of a table."""
    if len(parts) == 1:
        return parts[0]
    return _one_of_each(np.concatenate([part.codes for part in parts]), np.concatenate([part.totals for part in parts]))


def _one_of_each(codes: np.ndarray, totals: np.ndarray) -> Groups:
    different, place = np.unique(codes, axis=0, return_inverse=True)
    summed_totals = np.zeros(len(different), np.int64)
    np.add.at(summed_totals, place.reshape(-1), totals)
    return Groups(codes=different, totals=summed_totals)
