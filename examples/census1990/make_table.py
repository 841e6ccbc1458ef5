"""Draw a stand-in for the US Census 1990 table from the tree that was fitted to all of its rows, and write it as CSV.

    python examples/census1990/make_table.py path/to/uscensus1990_chowliu_cpts_fulldata.json census-standin.csv

Every column depends on one other, its parent in the tree. What the tree does not hold, the stand-in does not have:
results on it are results on a stand-in, and never on the census.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import numpy as np


def draw(nodes: dict[str, Any], rows: int, seed: int) -> dict[str, np.ndarray]:
    """Independent rows, column by column, parents first."""
    random = np.random.default_rng(seed)
    drawn: dict[str, np.ndarray] = {}
    waiting = list(nodes)
    while waiting:
        name = next(name for name in waiting if nodes[name]["parent"] is None or nodes[name]["parent"] in drawn)
        waiting.remove(name)
        drawn[name] = _column(nodes[name], drawn, rows, random)
    return {name: drawn[name] for name in nodes}


def _column(node: dict[str, Any], drawn: dict[str, np.ndarray], rows: int, random: np.random.Generator) -> np.ndarray:
    table = np.array(node["p"], float).reshape(len(node["values"]), -1)
    given = np.zeros(rows, np.intp)
    if node["parent"] is not None:
        order = np.argsort(node["parent_values"])
        given = order[np.searchsorted(np.array(node["parent_values"])[order], drawn[node["parent"]])]
    bounds = np.cumsum(table / table.sum(0), axis=0)
    level = (random.random(rows)[:, None] >= bounds.T[given, :-1]).sum(1)
    return np.array(node["values"])[level]


def main() -> None:
    """Read the tree, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="the conditional probabilities (JSON)")
    parser.add_argument("table", type=Path, help="the CSV file to write")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1990)
    given = parser.parse_args()
    drawn = draw(json.loads(given.tree.read_text("utf-8"))["nodes"], given.rows, given.seed)
    with given.table.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file)
        writer.writerow(drawn)
        writer.writerows(zip(*(column.tolist() for column in drawn.values()), strict=True))


if __name__ == "__main__":
    main()
