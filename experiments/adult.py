"""Adult: 46,043 census records of 1994, ten two-way marginals, a logistic regression of income.

The table is the same in every repeat, and the truth is what the analysis gives on the real table. The edges of bins
are declared here; the published experiment took them from the data. The marginals, five of which were found by a
private selection whose budget the published experiment does not count, are taken as given here too.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

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
from noisewise.analysis.remedies import DropHugeVariances, RidgeBootstrap
from noisewise.posterior.laplace import Laplace
from noisewise.schema import Categorical, Numeric, Schema
from noisewise.workload import Workload

ROWS = 46_043
DROPPED = ("fnlwgt", "educational-num", "native-country", "occupation", "relationship")
AGE = (16.927, 31.6, 46.2, 60.8, 75.4, 90.0)
HOURS = (0.902, 20.6, 40.2, 59.8, 79.4, 99.0)
AGE_MIDDLES = (24.2635, 38.9, 53.5, 68.1, 82.7)
# The first level of each column is one that is known to be common; race begins with the base of its dummies.
LEVELS = {
    "workclass": (
        "Private",
        "Federal-gov",
        "Local-gov",
        "Never-worked",
        "Self-emp-inc",
        "Self-emp-not-inc",
        "State-gov",
        "Without-pay",
    ),
    "education": (
        "HS-grad",
        "10th",
        "11th",
        "12th",
        "1st-4th",
        "5th-6th",
        "7th-8th",
        "9th",
        "Assoc-acdm",
        "Assoc-voc",
        "Bachelors",
        "Doctorate",
        "Masters",
        "Preschool",
        "Prof-school",
        "Some-college",
    ),
    "marital-status": (
        "Married-civ-spouse",
        "Divorced",
        "Married-AF-spouse",
        "Married-spouse-absent",
        "Never-married",
        "Separated",
        "Widowed",
    ),
    "race": ("White", "Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other"),
    "gender": ("Female", "Male"),
    "capital-gain": ("no", "yes"),
    "capital-loss": ("no", "yes"),
    "income": ("<=50K", ">50K"),
}
MARGINALS = (
    ("age", "income"),
    ("age", "marital-status"),
    ("age", "workclass"),
    ("education", "income"),
    ("race", "income"),
    ("race", "gender"),
    ("gender", "income"),
    ("capital-gain", "income"),
    ("capital-loss", "income"),
    ("hours-per-week", "income"),
)
FORMULA = "income ~ age + race + gender"
TERMS = {
    "Intercept": "const",
    "age": "age",
    "race[T.Amer-Indian-Eskimo]": "Amer-Indian-Eskimo",
    "race[T.Asian-Pac-Islander]": "Asian-Pac-Islander",
    "race[T.Black]": "Black",
    "race[T.Other]": "Other",
    "gender[T.Male]": "Male",
}
"""Terms of the formula, and how tables call them."""
ANALYSES = (
    Analysis(name="regularised", formula=FORMULA, family="binomial", remedy=RidgeBootstrap()),
    Analysis(name="plain", formula=FORMULA, family="binomial", remedy=DropHugeVariances()),
)


def schema() -> Schema:
    """The columns that the experiment keeps, with declared bins."""

    def categorical(name: str) -> Categorical:
        return Categorical(name=name, levels=LEVELS[name])

    return Schema(
        name="adult",
        column=(
            Numeric(name="age", edges=AGE, closed="right", representatives=AGE_MIDDLES),
            categorical("workclass"),
            categorical("education"),
            categorical("marital-status"),
            categorical("race"),
            categorical("gender"),
            categorical("capital-gain"),
            categorical("capital-loss"),
            Numeric(name="hours-per-week", edges=HOURS, closed="right"),
            categorical("income"),
        ),
    )


def load(path: Path) -> pa.Table:
    """The rows and columns that the experiment keeps: complete rows, gains and losses as yes or no."""
    frame = pd.read_csv(path).drop(columns=list(DROPPED))
    frame = frame[~(frame == "?").any(axis=1)].reset_index(drop=True)
    if len(frame) != ROWS:
        raise ValueError(f"{path} has {len(frame):,} complete rows; Adult has {ROWS:,}. Get the file anew.")
    for name in ("capital-gain", "capital-loss"):
        frame[name] = np.where(frame[name] > 0, "yes", "no")
    return pa.Table.from_pandas(frame[list(schema().names)], preserve_index=False)


def coded(table: pa.Table, of: Schema) -> np.ndarray:
    """Level codes of raw values: position among the levels, or the bin that holds the number."""
    columns = []
    for column in of.columns:
        values = table[column.name].to_numpy()
        if isinstance(column, Numeric):
            columns.append(np.searchsorted(column.edges[1:-1], values, side="left"))  # bins are closed on the right
        else:
            columns.append(pd.Categorical(values, categories=list(column.labels)).codes)
    codes = np.stack(columns, axis=1).astype(np.int64)
    if (codes < 0).any():
        raise ValueError("The table holds a value that the schema does not have.")
    return codes


@cache
def confidential(repeat: int = 0) -> Confidential:
    """The real table, the same in every repeat."""
    return Confidential(schema=schema(), codes=coded(load(data_file("adult", "adult.csv")), schema()))


@cache
def truth() -> dict[tuple[str, str], float]:
    """Coefficients on the real table: the target of both analyses."""
    estimates = glm(FORMULA, "binomial").fit([confidential().table])
    found = dict(zip(estimates.terms, map(float, estimates.values[0]), strict=True))
    return {(analysis.name, term): value for analysis in ANALYSES for term, value in found.items()}


def methods() -> tuple[Method, ...]:
    """All methods on Adult."""
    return (
        Napsu(),
        Napsu(name="NAPSU-MQ, canonical cells", cells="canonical"),
        Napsu(name="NAPSU-MQ, Laplace", method=Laplace()),
        Napsu(name="without noise awareness", method=Laplace(), noise_aware=False),
        Pgm(),
        Pgm(name="PGM, rounding", rounding=True),
        Pgm(name="PGM-repeat-5", repeats=5),
        Pgm(name="PGM-repeat-5, rounding", repeats=5, rounding=True),
        Pgm(name="PGM-repeat-10", repeats=10),
        Pgm(name="PGM-repeat-20", repeats=20),
        Pep(),
        Rap(iterations=10_000),
        Aim(),
        RealData(),
    )


@cache
def adult() -> Experiment:
    """The Adult experiment."""
    return Experiment(
        name="adult",
        title="Adult",
        schema=schema(),
        workload=Workload.of(schema(), MARGINALS),
        analyses=ANALYSES,
        truth=truth,
        sample=lambda repeat: confidential(),
        epsilons=(0.1, 0.3, 0.5, 1.0),
        repeats=20,
        methods=methods(),
        pools=(10, 25, 50, 100),
        reduced=("NAPSU-MQ", "PGM", "PGM-repeat-5", "PEP", "real data"),
    )
