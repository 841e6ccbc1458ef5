"""The toy: two fair coins and an outcome whose log odds rise by 1 with the first and by 0 with the second.

2,000 rows, one three-way marginal, logistic regression without intercept. Every repeat draws a fresh table. The
truth is the population's (1, 0), so that coverage is for the population.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from experiments.napsu import Napsu
from experiments.peers.pep import Pep
from experiments.peers.pgm import Pgm
from experiments.peers.privbayes import PrivBayes
from experiments.peers.rap import Rap
from experiments.records import Estimate, Records
from experiments.task import Method, Task
from noisewise.analysis import analyze, glm
from noisewise.demo import FAMILY, FORMULA, TRUTH, demo_schema, demo_table
from noisewise.posterior.laplace import Laplace
from noisewise.workload import Workload

EPSILONS = (0.1, 0.25, 0.5, 1.0, 10.0, 100.0)
NETWORK = (("x1", ()), ("x2", ("x1",)), ("x3", ("x1", "x2")))
METHODS: tuple[Method, ...] = (
    Napsu(method=Laplace()),
    Napsu(name="NAPSU-MQ, canonical cells", method=Laplace(), cells="canonical"),
    Napsu(name="without noise awareness", method=Laplace(), noise_aware=False),
    Napsu(name="without pooling", method=Laplace(), pooled=False),
    Napsu(name="without both", method=Laplace(), noise_aware=False, pooled=False),
    Pgm(),
    Pgm(name="PGM-repeat-5", repeats=5),
    Pep(),
    Rap(),
    PrivBayes(network=NETWORK),
)

Tell = Callable[[str], None]


def run(records: Records, repeats: int, epsilons: Sequence[float], methods: Sequence[Method], tell: Tell) -> None:
    """Do what is not done yet."""
    done = records.done()
    for repeat in range(repeats):
        for epsilon in epsilons:
            for method in methods:
                if (method.name, epsilon, repeat) not in done:
                    tell(f"repeat {repeat + 1} of {repeats}, ε = {epsilon:g}: {method.name}")
                    records.add(one_repeat(method, epsilon, repeat))


def one_repeat(method: Method, epsilon: float, repeat: int) -> list[Estimate]:
    """One fresh table, one budget, one method."""
    schema = demo_schema()
    task = Task(
        table=demo_table(seed=10_000 + repeat),
        schema=schema,
        workload=Workload.of(schema, [schema.names]),
        epsilon=epsilon,
        seed=repeat,
    )
    start = time.perf_counter()
    results = _analysed(method, task)
    seconds = time.perf_counter() - start
    return [
        Estimate(
            method=method.name,
            epsilon=epsilon,
            repeat=repeat,
            term=term,
            truth=TRUTH[term],
            estimate=estimate,
            stderr=stderr,
            dof=dof,
            seconds=seconds,
        )
        for term, (estimate, stderr, dof) in results.items()
    ]


def _analysed(method: Method, task: Task) -> dict[str, tuple[float, float, float]]:
    datasets = method.datasets(task)
    estimator = glm(FORMULA, family=FAMILY)
    if method.pooled:
        pooled = analyze(datasets, estimator, original_rows=task.rows, max_left_out=0.5)
        return {
            term: (one.estimate, float(np.sqrt(one.variance)), one.dof)
            for term, one in zip(pooled.terms, pooled.pooled, strict=True)
        }
    single = estimator.fit(datasets[:1])
    return {
        term: (float(single.values[0, i]), float(np.sqrt(single.variances[0, i])), float("inf"))
        for i, term in enumerate(single.terms)
    }


def coverage_table(estimates: Sequence[Estimate], level: float = 0.95) -> list[dict[str, object]]:
    """Coverage with its binomial 95 % band, and the median width, by method, ε and term."""
    groups: dict[tuple[str, float, str], list[Estimate]] = {}
    for estimate in estimates:
        groups.setdefault((estimate.method, estimate.epsilon, estimate.term), []).append(estimate)
    return [_coverage_row(key, group, level) for key, group in groups.items()]


def _coverage_row(key: tuple[str, float, str], group: list[Estimate], level: float) -> dict[str, object]:
    half = np.array([stats.t.ppf((1 + level) / 2, e.dof) * e.stderr for e in group])
    hit = np.abs([e.estimate - e.truth for e in group]) <= half
    interval = stats.binomtest(int(hit.sum()), len(group)).proportion_ci(0.95, method="exact")
    return {
        "method": key[0],
        "epsilon": key[1],
        "term": key[2],
        "level": level,
        "repeats": len(group),
        "coverage": round(float(hit.mean()), 4),
        "coverage_low": round(float(interval.low), 4),
        "coverage_high": round(float(interval.high), 4),
        "median_width": round(float(np.median(2 * half)), 4),
        "median_seconds": round(float(np.median([e.seconds for e in group])), 3),
    }
