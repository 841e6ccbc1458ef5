"""Each method is correct in its own right: on small tables, with next to no noise, it recovers what it measures."""

import numpy as np
import pytest

from experiments.napsu import Napsu, as_if_exact
from experiments.peers.pep import Pep, project
from experiments.peers.pgm import Pgm
from experiments.peers.privbayes import PrivBayes, conditional
from experiments.peers.rap import Rap, _sparsemax, draw
from experiments.task import Task
from experiments.toy import NETWORK
from noisewise.demo import demo_schema, demo_table
from noisewise.posterior.laplace import Laplace
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.workload import Workload


def _task(epsilon: float = 100.0, rows: int = 20_000) -> Task:
    schema = demo_schema()
    return Task(
        table=demo_table(seed=1, rows=rows),
        schema=schema,
        workload=Workload.of(schema, [schema.names]),
        epsilon=epsilon,
        seed=1,
    )


def _cells(dataset) -> np.ndarray:
    codes = np.stack([np.asarray(dataset[name]) for name in ("x1", "x2", "x3")], axis=1)
    return np.bincount(codes @ [4, 2, 1], minlength=8)


@pytest.mark.parametrize(
    "method",
    [Pgm(), Pgm(rounding=True), Pep(), Rap(iterations=500), PrivBayes(network=NETWORK), Napsu(method=Laplace(), m=2)],
    ids=lambda method: method.name,
)
def test_with_little_noise_the_datasets_have_the_tables_cells(method):
    task = _task()

    cells = _cells(method.datasets(task)[0])

    # Sampling 20,000 rows moves a cell by about 45; 5 of those, plus 1 % of the rows for a method's own error.
    assert np.abs(cells - _cells(task.table)).max() < 225 + 200


@pytest.mark.parametrize("method", [Pgm(), Pep(), PrivBayes(network=NETWORK), Napsu(method=Laplace(), m=2)], ids=str)
def test_the_same_seed_gives_the_same_data(method):
    first, second = (method.datasets(_task(epsilon=1.0, rows=500))[0] for _ in range(2))

    assert first.equals(second)


def test_repeated_measuring_stays_within_the_one_budget():
    task = _task(epsilon=1.0, rows=2000)

    stddevs = tuple(m.stddev for counts in task.noisy_counts(repeats=5) for m in counts.measurements)

    assert len(stddevs) == 5
    assert PrivacyLoss(stddevs=stddevs).epsilon(2000**-2.0) <= 1.0 + 1e-6
    assert stddevs[0] == pytest.approx(task.stddev(1) * 5**0.5, rel=1e-3)


def test_pep_answers_overlapping_marginals_in_the_schemas_order():
    schema = demo_schema()
    task = Task(
        table=demo_table(seed=2, rows=5000),
        schema=schema,
        workload=Workload.of(schema, [["x3", "x1"], ["x2", "x3"]]),
        epsilon=1000.0,
        seed=1,
    )
    (noisy_counts,) = task.noisy_counts()

    table = project(noisy_counts, steps=2000)

    for kept, measured in zip(((0, 2), (1, 2)), noisy_counts.measurements, strict=True):
        answer = table.sum(axis=({0, 1, 2} - set(kept)).pop())
        assert np.abs(answer - measured.values / 5000).max() < 2e-3


def test_privbayes_conditionals_are_probabilities_whatever_the_noise():
    table = conditional(np.array([[-5, -7], [10, 30]]), axis=1)

    assert table.tolist() == [[0.5, 0.5], [0.25, 0.75]]


def test_sparsemax_projects_onto_probabilities():
    scores = np.random.default_rng(1).normal(size=(50, 4))

    for row in scores:
        projected = np.asarray(_sparsemax(row))
        assert projected.sum() == pytest.approx(1, abs=1e-6)
        assert (projected >= 0).all()
    assert np.asarray(_sparsemax(np.array([0.2, 0.3, 0.5]))) == pytest.approx([0.2, 0.3, 0.5], abs=1e-6)


def test_rap_draws_from_its_relaxed_rows():
    relaxed = np.array([[1.0, 0.0, 0.25, 0.75]])

    codes = draw(relaxed, (2, 2), 10_000, np.random.default_rng(1))

    assert (codes[:, 0] == 0).all()
    assert codes[:, 1].mean() == pytest.approx(0.75, abs=0.02)  # 4.6 standard errors


def test_the_ablation_changes_the_likelihood_and_nothing_else():
    (noisy_counts,) = _task(epsilon=1.0, rows=500).noisy_counts()

    unaware = as_if_exact(noisy_counts)

    assert unaware.measurements[0].stddev == 1e-3
    assert (unaware.measurements[0].values == noisy_counts.measurements[0].values).all()
