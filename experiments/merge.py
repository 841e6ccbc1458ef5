"""Tables that are there already: what rests on more repeats than the runs at hand is kept.

Records stay on the machine that made them, and tables are what is committed. Whoever reruns one method would otherwise
wipe out all others, or replace a hundred repeats by five.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.measures import Row

Cell = tuple[str, str]
"""A method and a budget, as tables write them."""


def kept_cells(folder: Path, seconds: Sequence[Row]) -> set[Cell]:
    """The methods and budgets of which the folder's tables have more repeats than there are runs at hand."""
    ours = {(str(row["method"]), str(row["epsilon"])): int(str(row["repeats"])) for row in seconds}
    there = ((row["method"], row["epsilon"], int(row["repeats"])) for row in _read(folder / "seconds.csv"))
    return {(method, epsilon) for method, epsilon, count in there if count > ours.get((method, epsilon), 0)}


def merged(path: Path, rows: Sequence[Row], kept: set[Cell], order: Mapping[str, int]) -> list[Row]:
    """The rows of a table, those of the kept cells from the file; sorted by method and budget."""
    old: list[Row] = [dict(row) for row in _read(path)]
    both = [row for row in old if _cell(row, order) in kept] + [row for row in rows if _cell(row, order) not in kept]
    return sorted(both, key=lambda row: (order[_cell(row, order)[0]], float(_cell(row, order)[1])))


def _cell(row: Mapping[str, object], order: Mapping[str, int]) -> Cell:
    """Which method's runs a row comes from: "PGM-repeat-5, one dataset" from those of PGM-repeat-5."""
    label = str(row["method"])
    own = max((m for m in order if label == m or label.startswith(f"{m}, ")), key=len, default="")
    return own, str(row["epsilon"])


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
