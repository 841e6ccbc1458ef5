"""A calibration that nobody has published: the American Community Survey of Massachusetts, as NIST excerpts it.

The table of 7,634 people is the population; every repeat draws as many people from it, with replacement, and the truth
is what the analyses give on the whole table. Coverage is therefore for a population, as in the toy, on real data with
mixed types and codes for "not applicable" (an income decile for people under 15, a walking difficulty for those under
5). The marginals hold what the two analyses rest on, each in one table: with them, and without noise, the model gives
the true coefficients. What the codes' definitions exclude is declared in rules.
"""

from functools import cache, lru_cache

import numpy as np
import pandas as pd

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
from noisewise.schema import Categorical, Numeric, Rule, Schema
from noisewise.workload import Workload

ROWS = 7_634
AGES = (0.0, 5.0, 15.0, 35.0, 55.0, 100.0)
EDUCATION = {
    "before diploma": ("N", "1", "2", "3", "4"),
    "diploma": ("5", "6", "7", "8"),
    "degree": ("9", "10", "11", "12"),
}
"""The dictionary's codes, in three groups; N is for people under 3."""
HOME = {"not own": ("2", "0"), "own": ("1",)}
"""Those who rent, with those in group quarters, and those who live in a home of their own family's."""
DECILES = (-0.5, 1.5, 3.5, 5.5, 7.5, 9.5)
"""Income deciles in twos."""
MARGINALS = (
    ("AGEP", "SEX", "PINCP_DECILE"),
    ("AGEP", "SEX", "OWN_RENT"),
    ("AGEP", "SEX", "DPHY"),
    ("AGEP", "EDU"),
)
RULES = (
    {"AGEP": ("[0, 5)", "[5, 15)"), "PINCP_DECILE": {"not": "N"}},
    {"AGEP": {"not": ("[0, 5)", "[5, 15)")}, "PINCP_DECILE": "N"},
    {"AGEP": ("[0, 5)", "[5, 15)"), "EDU": {"not": "before diploma"}},
    {"AGEP": "[0, 5)", "DPHY": {"not": "(missing)"}},
    {"AGEP": {"not": "[0, 5)"}, "DPHY": "(missing)"},
)
"""What cannot occur: income is asked about from 15 on, walking from 5 on; no child has a diploma."""
ANALYSES = (
    Analysis(name="linear", formula="PINCP_DECILE ~ AGEP + SEX", family="gaussian"),
    Analysis(name="logistic", formula="OWN_RENT ~ AGEP + SEX", family="binomial"),
    Analysis(name="rare outcome", formula="DPHY ~ AGEP + SEX", family="binomial"),
)


def schema() -> Schema:
    """Seven columns; what is not applicable is a level of its own."""
    return Schema(
        name="sdnist",
        column=(
            Numeric(name="AGEP", edges=AGES, integer=True),
            Categorical(name="SEX", levels=("1", "2")),
            Categorical(name="EDU", levels=tuple(EDUCATION), fold=EDUCATION),
            Numeric(name="PINCP_DECILE", edges=DECILES, codes=("N",)),
            Categorical(name="DPHY", levels=("2", "1"), missing="category", missing_values=("N",)),
            Categorical(name="OWN_RENT", levels=tuple(HOME), fold=HOME),
        ),
        rule=tuple(Rule(impossible=levels) for levels in RULES),
    )


@cache
def population() -> Confidential:
    """The whole table, as level codes."""
    frame = pd.read_csv(data_file("sdnist", "sdnist_ma2019.csv"), dtype=str, keep_default_na=False)
    if len(frame) != ROWS:
        raise ValueError(f"The table has {len(frame):,} rows and should have {ROWS:,}. Get the file anew.")
    group = {code: name for name, codes in EDUCATION.items() for code in codes}
    columns = {
        "AGEP": np.searchsorted(AGES[1:-1], frame["AGEP"].astype(float), side="right"),
        "SEX": positions(frame["SEX"], ("1", "2")),
        "EDU": positions(frame["EDU"].map(group), tuple(EDUCATION)),
        "PINCP_DECILE": positions(frame["PINCP_DECILE"], (*map(str, range(10)), "N")) // 2,
        "DPHY": positions(frame["DPHY"], ("2", "1", "N")),
        "OWN_RENT": positions((frame["OWN_RENT"] == "1").map({False: "not own", True: "own"}), tuple(HOME)),
    }
    return Confidential(schema=schema(), codes=np.stack([columns[n] for n in schema().names], axis=1).astype(np.int64))


def positions(values: pd.Series, levels: tuple[str, ...]) -> np.ndarray:
    """Position of each value among the levels."""
    codes = pd.Categorical(values, categories=list(levels)).codes
    if (codes < 0).any():
        raise ValueError(f"Column {values.name} holds a value that the schema does not have.")
    return codes


@lru_cache(maxsize=2)
def sample(repeat: int) -> Confidential:
    """People drawn from the population with replacement, as many as it has."""
    chosen = np.random.default_rng([2019, repeat]).integers(ROWS, size=ROWS)
    return Confidential(schema=schema(), codes=population().codes[chosen])


@cache
def truth() -> dict[tuple[str, str], float]:
    """Coefficients on the whole population."""
    found = {}
    for analysis in ANALYSES:
        estimates = glm(analysis.formula, analysis.family).fit([population().table])
        found |= {(analysis.name, t): float(v) for t, v in zip(estimates.terms, estimates.values[0], strict=True)}
    return found


def methods() -> tuple[Method, ...]:
    """All methods on this table."""
    return (
        Napsu(),
        Pgm(),
        Pgm(name="PGM-repeat-5", repeats=5),
        Pep(),
        Rap(iterations=10_000),
        Aim(),
        RealData(),
    )


@cache
def sdnist() -> Experiment:
    """The experiment."""
    return Experiment(
        name="sdnist",
        title="SDNist Massachusetts",
        schema=schema(),
        workload=Workload.of(schema(), MARGINALS),
        analyses=ANALYSES,
        truth=truth,
        sample=sample,
        epsilons=(0.3, 1.0, 3.0),
        repeats=100,
        methods=methods(),
        reduced=("NAPSU-MQ", "PGM", "PGM-repeat-5", "PEP", "real data"),
    )
