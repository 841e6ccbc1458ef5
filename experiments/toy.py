"""The toy: two fair coins and an outcome whose log odds rise by 1 with the first and by 0 with the second.

2,000 rows, one three-way marginal, logistic regression without intercept. Every repeat draws a fresh table. The
truth is the population's (1, 0), so that coverage is for the population.
"""

from functools import cache, lru_cache

import numpy as np

from experiments.experiment import Analysis, Experiment
from experiments.napsu import Napsu
from experiments.peers.aim import Aim
from experiments.peers.pep import Pep
from experiments.peers.pgm import Pgm
from experiments.peers.privbayes import PrivBayes
from experiments.peers.privlcm import PrivLcm
from experiments.peers.rap import Rap
from experiments.peers.real import RealData
from experiments.task import Confidential, Method
from noisewise.demo import FAMILY, FORMULA, TRUTH, demo_schema, demo_table
from noisewise.posterior.laplace import Laplace
from noisewise.workload import Workload

EPSILONS = (0.1, 0.25, 0.5, 1.0, 10.0, 100.0)
NETWORK = (("x1", ()), ("x2", ("x1",)), ("x3", ("x1", "x2")))
METHODS: tuple[Method, ...] = (
    Napsu(method=Laplace()),
    Napsu(name="NAPSU-MQ, canonical cells", method=Laplace(), cells="canonical", reference="last"),
    Napsu(name="without noise awareness", method=Laplace(), noise_aware=False),
    Pgm(),
    Pgm(name="PGM, rounding", rounding=True),
    Pgm(name="PGM-repeat-5", repeats=5),
    Pgm(name="PGM-repeat-5, rounding", repeats=5, rounding=True),
    Pep(),
    Rap(),
    PrivBayes(network=NETWORK),
    PrivLcm(),
    Aim(degree=3),
    RealData(),
)


@cache
def toy() -> Experiment:
    """The toy experiment."""
    schema = demo_schema()
    return Experiment(
        name="toy",
        title="Toy",
        schema=schema,
        workload=Workload.of(schema, [schema.names]),
        analyses=(Analysis(name="logistic", formula=FORMULA, family=FAMILY),),
        truth=lambda: {("logistic", term): value for term, value in TRUTH.items()},
        sample=_sample,
        epsilons=EPSILONS,
        repeats=100,
        methods=METHODS,
        reduced=tuple(method.name for method in METHODS if method.name not in ("PrivLCM", "AIM")),
    )


@lru_cache(maxsize=2)
def _sample(repeat: int) -> Confidential:
    """A fresh table: the columns hold 0 and 1, which are also the level codes."""
    schema, table = demo_schema(), demo_table(seed=10_000 + repeat)
    return Confidential(schema=schema, codes=np.stack([table[name].to_numpy() for name in schema.names], axis=1))
