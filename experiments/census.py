"""US Census 1990: 320,754 records of people who served, seven marginals, a logistic regression of poverty.

`census` reads the real file, which is too large to keep here. `census-standin` is drawn from a tree of conditional
probabilities that was fitted to all rows of the real file: it keeps every column and the strongest pair relations, not
the relations that the analysis is about. Its results are about that table, and are never called Census 1990.
"""

import csv
import hashlib
import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data import data_file
from experiments.experiment import Analysis, Experiment
from experiments.napsu import Napsu
from experiments.peers.aim import Aim
from experiments.peers.pep import Pep
from experiments.peers.pgm import Pgm
from experiments.peers.rap import Rap
from experiments.peers.real import RealData
from experiments.task import Confidential, Method
from noisewise.analysis import glm
from noisewise.model.sampling import invert
from noisewise.schema import Categorical, Schema
from noisewise.workload import Workload

ALL_ROWS = 2_458_285
ROWS = 320_754
SERVED = (1, 2, 3)
"""Values of iMilitary that are kept."""
FIRST_LINES = 1_001
FIRST_LINES_SHA256 = "4c5c60d66a06e57dc41e3e5f08d2427b3dabd393839b2d8592e7038f55a3ee99"
"""SHA-256 of the header and the first 1,000 rows, joined by line feeds. One of the whole file is not known to us."""
# The first value of each column is a common one: parameters, and dummy variables, are relative to it.
VALUES = {
    "dYrsserv": (1, 0, 2),
    "iSex": (0, 1),
    "iVietnam": (0, 1),
    "iKorean": (0, 1),
    "iMilitary": (2, 1, 3),
    "dPoverty": (2, 0, 1),
    "iMobillim": (2, 1),
    "iEnglish": (0, 1, 2, 3, 4),
    "iMarital": (0, 1, 2, 3, 4),
}
MARGINALS = (
    ("dPoverty", "iSex", "iMilitary"),
    ("dPoverty", "iVietnam", "iKorean"),
    ("dPoverty", "iMilitary", "dYrsserv"),
    ("iMilitary", "iVietnam", "iKorean"),
    ("iMilitary", "iMarital"),
    ("iMilitary", "iMobillim"),
    ("iMilitary", "iEnglish"),
)
FORMULA = "I(dPoverty != 2) ~ iSex + iVietnam + iKorean + iMilitary"
TERMS = {
    "Intercept": "const",
    "iSex[T.1]": "iSex_1",
    "iVietnam[T.1]": "iVietnam_1",
    "iKorean[T.1]": "iKorean_1",
    "iMilitary[T.1]": "iMilitary_1",
    "iMilitary[T.3]": "iMilitary_3",
}
"""Terms of the formula, and how tables call them."""
ANALYSIS = Analysis(name="logistic", formula=FORMULA, family="binomial")


def schema(name: str) -> Schema:
    """Nine columns of whole-numbered codes."""
    return Schema(name=name, column=tuple(Categorical(name=column, levels=values) for column, values in VALUES.items()))


def load(path: Path, all_rows: int = ALL_ROWS, rows: int = ROWS) -> np.ndarray:
    """Level codes of those who served, from the original comma-separated file."""
    verify_head(path)
    with path.open(newline="", encoding="ascii") as file:
        reader = csv.reader(file)
        header = next(reader)
        where = [header.index(name) for name in VALUES]
        military = header.index("iMilitary")
        wanted, read, kept = {str(v) for v in SERVED}, 0, []
        for row in reader:
            read += 1
            if row[military] in wanted:
                kept.append([int(row[i]) for i in where])
    if (read, len(kept)) != (all_rows, rows):
        raise ValueError(
            f"{path} has {read:,} rows, {len(kept):,} of people who served; the file has {all_rows:,} and {rows:,}. "
            "Fetch it anew."
        )
    return _coded(np.array(kept))


def verify_head(path: Path) -> None:
    """Refuse a file whose first lines are not those of the original."""
    with path.open(encoding="ascii") as file:
        head = "\n".join(line.strip() for line in islice(file, FIRST_LINES))
    if hashlib.sha256(head.encode()).hexdigest() != FIRST_LINES_SHA256:
        raise ValueError(f"The first {FIRST_LINES:,} lines of {path} are not those of the census file. Fetch it anew.")


def _coded(values: np.ndarray) -> np.ndarray:
    """Position of each value among its column's levels."""
    codes = np.full(values.shape, -1)
    for column, levels in enumerate(VALUES.values()):
        for code, level in enumerate(levels):
            codes[values[:, column] == level, column] = code
    if (codes < 0).any():
        raise ValueError("The table holds a value that the schema does not have.")
    return codes


def draw_standin(tree: dict[str, Any], rows: int, seed: int) -> np.ndarray:
    """Level codes of the first `rows` rows of people who served, drawn down the tree of conditional probabilities."""
    generator = np.random.default_rng(seed)
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < rows:
        drawn = _draw_tree(tree, 200_000, generator)
        inside = np.ones(200_000, bool)
        for name, values in VALUES.items():
            inside &= np.isin(drawn[name], values)
        kept.append(np.stack([drawn[name][inside] for name in VALUES], axis=1))
    return _coded(np.concatenate(kept)[:rows])


def _draw_tree(tree: dict[str, Any], rows: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Independent rows of the needed columns and of all that lie above them in the tree."""
    drawn: dict[str, np.ndarray] = {}

    def draw(name: str) -> np.ndarray:
        if name not in drawn:
            node = tree[name]
            table = np.array(node["p"], dtype=float)
            if node["parent"] is None:
                given, table = np.zeros(rows, np.intp), table[:, None]
            else:
                position = np.zeros(max(node["parent_values"]) + 1, np.intp)
                position[node["parent_values"]] = np.arange(len(node["parent_values"]))
                given = position[draw(node["parent"])]
            cumulative = np.cumsum(table / table.sum(axis=0), axis=0).T
            level = invert(cumulative / cumulative[:, -1:], given, generator.random(rows))
            drawn[name] = np.array(node["values"])[level]
        return drawn[name]

    for name in VALUES:
        draw(name)
    return drawn


@cache
def confidential(name: str) -> Confidential:
    """The table, the same in every repeat: the real one or the stand-in."""
    if name == "census":
        return Confidential(schema=schema(name), codes=load(data_file("census1990", "USCensus1990.data.txt")))
    tree = json.loads(data_file("census1990", "uscensus1990_chowliu_cpts_fulldata.json").read_text("utf-8"))
    return Confidential(schema=schema(name), codes=draw_standin(tree["nodes"], ROWS, seed=1990))


@cache
def truth(name: str) -> dict[tuple[str, str], float]:
    """Coefficients on the whole table: the target of the analysis."""
    estimates = glm(FORMULA, "binomial").fit([confidential(name).table])
    return {(ANALYSIS.name, t): float(v) for t, v in zip(estimates.terms, estimates.values[0], strict=True)}


def methods() -> tuple[Method, ...]:
    """All methods on the census table."""
    return (
        Napsu(),
        Napsu(name="NAPSU-MQ, canonical cells", cells="canonical"),
        Pgm(iterations=10_000),
        Pgm(name="PGM, rounding", iterations=10_000, rounding=True),
        Pgm(name="PGM-repeat-5", repeats=5, iterations=10_000),
        Pgm(name="PGM-repeat-10", repeats=10, iterations=10_000),
        Pgm(name="PGM-repeat-20", repeats=20, iterations=10_000),
        Pep(steps=10_000),
        Rap(iterations=10_000),
        Aim(),
        RealData(),
    )


def _experiment(name: str, title: str) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        schema=schema(name),
        workload=Workload.of(schema(name), MARGINALS),
        analyses=(ANALYSIS,),
        truth=lambda: truth(name),
        sample=lambda repeat: confidential(name),
        epsilons=(0.1, 0.3, 0.5, 1.0),
        repeats=20,
        methods=methods(),
        reduced=("NAPSU-MQ", "PGM", "PGM-repeat-5", "PEP", "real data"),
    )


@cache
def census() -> Experiment:
    """The experiment on the real file."""
    return _experiment("census", "US Census 1990")


@cache
def standin() -> Experiment:
    """The experiment on the stand-in."""
    return _experiment("census-standin", "Census stand-in")
