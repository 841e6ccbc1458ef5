"""The tables of the page: put between its marks from the CSV files, so that no number there is written by hand."""

import csv
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.published import ADULT_DISTANCES, ADULT_LEVELS, BUDGETS

MARK = re.compile(r"<!-- table: (?P<name>[a-z0-9-]+) -->\n(?P<body>.*?)<!-- end -->\n", re.DOTALL)
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Grid:
    """Methods down, budgets across: published → ours where there is something published."""

    experiment: str
    """The experiment, which is its folder too."""
    column: str
    """What is shown: `coverage` or a width."""
    methods: tuple[str, ...]
    """The rows; those without a run are left out."""
    where: tuple[tuple[str, str], ...]
    """Which rows of the table are meant."""
    banded: bool = False
    """Whether the bands are shown."""
    median: bool = False
    """Whether the median over the terms is shown instead of the mean."""


PEERS = ("PGM", "PGM, rounding", "PEP", "RAP", "AIM")
REPEATS = ("PGM-repeat-5", "PGM-repeat-5, rounding", "PGM-repeat-10", "PGM-repeat-20")
ABLATIONS = ("without noise awareness", "NAPSU-MQ, one dataset", "without noise awareness, one dataset")
NAPSU = ("NAPSU-MQ", "NAPSU-MQ, canonical cells")
EVERY = (*NAPSU, "NAPSU-MQ, Laplace", *ABLATIONS, *PEERS, "PrivBayes", "PrivLCM", *REPEATS, "real data")
POOLED = (*NAPSU, "NAPSU-MQ, Laplace", "without noise awareness", "PrivLCM", *REPEATS)
HONEST = ("selection counted", "selection for free", "real data")
ALL = ("term", "all terms")
GRIDS = {
    "toy-coverage": Grid("toy", "coverage", EVERY, (("term", "x1"),)),
    "toy-coverage-2": Grid("toy", "coverage", EVERY, (("term", "x2"),)),
    "toy-bands": Grid("toy", "coverage", NAPSU, (("term", "x1"),), banded=True),
    "toy-widths": Grid("toy", "median_width", POOLED, (("term", "x1"),)),
    "adult-regularised": Grid("adult", "coverage", EVERY, (("analysis", "regularised"), ALL)),
    "adult-plain": Grid("adult", "coverage", EVERY, (("analysis", "plain"), ALL)),
    "adult-bands": Grid("adult", "coverage", NAPSU, (("analysis", "plain"), ALL), banded=True),
    "adult-widths": Grid("adult", "width_to_real", (*POOLED, "PGM", "PEP", "RAP"), (("analysis", "regularised"), ALL)),
    "adult-medians": Grid(
        "adult", "width_to_real", (*POOLED, "PGM", "PEP", "RAP"), (("analysis", "regularised"), ALL), median=True
    ),
    "adult-m": Grid(
        "adult",
        "width_to_real",
        ("NAPSU-MQ, m = 10", "NAPSU-MQ, m = 25", "NAPSU-MQ, m = 50", "NAPSU-MQ"),
        (("analysis", "regularised"), ALL),
    ),
    "census-coverage": Grid("census-standin", "coverage", EVERY, (ALL,)),
    "census-bands": Grid("census-standin", "coverage", ("NAPSU-MQ", "PGM"), (ALL,), banded=True),
    "census-widths": Grid("census-standin", "width_to_real", POOLED, (ALL,)),
    "sdnist-linear": Grid("sdnist", "coverage", EVERY, (("analysis", "linear"), ALL)),
    "sdnist-logistic": Grid("sdnist", "coverage", EVERY, (("analysis", "logistic"), ALL)),
    "sdnist-rare": Grid("sdnist", "coverage", EVERY, (("analysis", "rare outcome"), ALL)),
    "sdnist-widths": Grid("sdnist", "width_to_real", POOLED, (("analysis", "linear"), ALL)),
    "honesty-coverage": Grid("honesty", "coverage", HONEST, (("analysis", "plain"), ALL)),
    "honesty-widths": Grid("honesty", "width_to_real", HONEST, (("analysis", "plain"), ALL)),
}


def filled(page: str, folder: Path) -> str:
    """The page with every table made anew."""

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in OTHERS and name not in GRIDS:
            raise ValueError(f"The page has a mark for {name!r}. There are: {', '.join((*GRIDS, *OTHERS))}.")
        made = OTHERS[name](folder) if name in OTHERS else grid(GRIDS[name], folder)
        return f"<!-- table: {name} -->\n\n{made}\n<!-- end -->\n"

    return MARK.sub(table, page)


def grid(spec: Grid, folder: Path) -> str:
    """One table of methods by budgets."""
    ours = _rows(folder / spec.experiment / "coverage.csv", spec.where)
    published = _rows(folder / spec.experiment / "published.csv", [w for w in spec.where if w != ALL])
    if spec.median:
        terms = _rows(folder / spec.experiment / "coverage.csv", [w for w in spec.where if w != ALL])
        ours = [row | {spec.column: _median(row, terms, spec.column)} for row in ours]
    budgets = list(dict.fromkeys(sorted((row["epsilon"] for row in ours), key=float)))
    lines = []
    for method in spec.methods:
        mine = {row["epsilon"]: row for row in ours if row["method"] == method}
        if not mine:
            continue
        known = {row["epsilon"]: row for row in published if row["method"] == method}
        kind = "coverage" if spec.column == "coverage" else "width"
        cells = [
            _cell(mine.get(budget), known.get(budget, {}).get(f"{kind}_published", ""), spec) for budget in budgets
        ]
        counts = [mine[budget]["repeats"] if budget in mine else "0" for budget in budgets]
        lines.append([method, *cells, counts[0] if len(set(counts)) == 1 else " / ".join(counts)])
    return markdown(["", *(f"ε = {budget}" for budget in budgets), "repeats"], lines)


def _median(joint: dict[str, str], rows: Rows, column: str) -> str:
    """The median of a column over the terms that a row stands for."""
    same = [row for row in rows if (row["method"], row["epsilon"]) == (joint["method"], joint["epsilon"])]
    values = [float(row[column]) for row in same if row["term"] != ALL[1] and row[column]]
    return str(statistics.median(values)) if values else ""


def _cell(row: dict[str, str] | None, published: str, spec: Grid) -> str:
    if row is None or not row[spec.column]:
        return "–"
    said = number(row[spec.column])
    if spec.banded:
        return f"{said} ({number(row['coverage_low'])} to {number(row['coverage_high'])})"
    return f"{number(published)} → {said}" if published else said


def toy_theory(folder: Path) -> str:
    """What the delta method says about the widths of the toy."""
    rows = _rows(folder / "toy" / "theory.csv", ())
    lines = [
        [title, *(number(row[column]) for row in rows)]
        for title, column in (("all cells", "all_cells"), ("published cells", "without_last_cell"))
    ]
    return markdown(["", *(f"ε = {row['epsilon']}" for row in rows)], lines)


def adult_levels(folder: Path) -> str:
    """Coverage at several levels, published → ours."""
    rows = _rows(folder / "adult" / "calibration.csv", (("analysis", "regularised"),))
    lines = []
    for method, by_budget in ADULT_LEVELS.items():
        for level in next(iter(by_budget.values())):
            mine = {
                row["epsilon"]: row
                for row in rows
                if row["method"] == method and float(row["level"]) == level and row["coverage"]
            }
            if mine:
                cells = [
                    f"{number(by_budget[b][level])} → {number(mine[f'{b:g}']['coverage'])}" if f"{b:g}" in mine else "–"
                    for b in BUDGETS
                ]
                lines.append([method, f"{100 * level:.0f} %", *cells])
    return markdown(["", "nominal", *(f"ε = {b:g}" for b in BUDGETS)], lines)


def distances(folder: Path) -> str:
    """Mean distances of the marginals on Adult, published → ours."""
    rows = _rows(folder / "adult" / "distances.csv", ())
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        for kind in ("1-way", "2-way"):
            mine = {row["epsilon"]: number(row[kind], 3) for row in rows if row["method"] == method}
            known = ADULT_DISTANCES.get((method, kind))
            cells = [
                (f"{number(known[i], 3)} → " if known else "") + mine[f"{b:g}"] if f"{b:g}" in mine else "–"
                for i, b in enumerate(BUDGETS)
            ]
            lines.append([method, kind, *cells])
    return markdown(["", "marginals", *(f"ε = {b:g}" for b in BUDGETS)], lines)


def seconds(folder: Path) -> str:
    """Median processor seconds of each method, from making noisy counts to the last synthetic row."""
    names = [name for name in ("toy", "adult", "census-standin", "sdnist") if (folder / name / "seconds.csv").exists()]
    found = {name: _rows(folder / name / "seconds.csv", ()) for name in names}
    methods = list(dict.fromkeys(row["method"] for name in names for row in found[name]))
    lines = []
    for method in methods:
        cells = []
        for name in names:
            mine = [row for row in found[name] if row["method"] == method]
            values = [float(row["processor_seconds"]) for row in mine if row.get("processor_seconds")]
            cells.append("–" if not values else _range(values))
        lines.append([method, *cells])
    return markdown(["", *names], lines)


def diagnostics(folder: Path) -> str:
    """The worst R-hat and effective size of any repeat, and how many repeats were trusted."""
    lines = []
    for name in ("adult", "census-standin", "sdnist", "honesty"):
        path = folder / name / "diagnostics.csv"
        for row in _rows(path, ()) if path.exists() else []:
            if row.get("rhat") and row.get("ess"):
                judged = [number(row["rhat"], 3), f"{float(row['ess']):.0f}", f"{100 * float(row['trusted']):.0f} %"]
                by_nuts = f"{100 * float(row['nuts']):.0f} %" if row.get("nuts") else "–"
                lines.append([name, row["method"], row["epsilon"], row["repeats"], *judged, by_nuts])
    return markdown(["experiment", "method", "ε", "repeats", "R-hat", "ESS", "trusted", "by NUTS"], lines)


OTHERS: dict[str, Callable[[Path], str]] = {
    "toy-theory": toy_theory,
    "adult-levels": adult_levels,
    "adult-distances": distances,
    "seconds": seconds,
    "diagnostics": diagnostics,
}
"""Tables of other forms."""


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table, or a sentence if there is nothing to show."""
    if not lines:
        return "Nothing was run yet.\n"
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def number(text: str | float, digits: int = 2) -> str:
    """A number as the page shows it: .95, 1.35, 12.1."""
    value = float(text)
    if abs(value) >= 9_999.5:
        return "over 9,999"
    if digits == 2 and abs(value) >= 9.95:
        return f"{value:.1f}" if abs(value) < 99.5 else f"{value:.0f}"
    return f"{value:.{digits}f}".removeprefix("0") if 0 <= value < 1 else f"{value:.{digits}f}"


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:.2g}" if value < 10 else f"{value:.0f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _rows(path: Path, where: Sequence[tuple[str, str]]) -> Rows:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if all(row.get(name) == value for name, value in where)]
