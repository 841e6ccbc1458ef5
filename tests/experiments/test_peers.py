"""Each method is correct in its own right: on small tables, with next to no noise, it recovers what it measures."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from experiments.napsu import Napsu, as_if_exact, mirrored
from experiments.peers.aim import Aim, answer, whole_rho
from experiments.peers.pep import Pep, project
from experiments.peers.pgm import Pgm, double_precision, estimate
from experiments.peers.privbayes import PrivBayes, conditional
from experiments.peers.rap import Rap, _sparsemax, draw
from experiments.task import encode, stddev_for, tabulate
from experiments.toy import NETWORK
from experiments_small import toy_task
from noisewise.posterior.laplace import Laplace
from noisewise.privacy.accounting import PrivacyLoss, concentrated_delta

MIRRORED = Napsu(name="canonical", method=Laplace(), cells="canonical", reference="last", m=2)
METHODS = [
    Pgm(),
    Pgm(name="PGM, rounding", rounding=True),
    Pep(),
    Rap(iterations=1000),
    PrivBayes(network=NETWORK),
    Napsu(method=Laplace(), m=2),
    MIRRORED,
]


def _cells(dataset, schema) -> np.ndarray:
    return tabulate(encode(dataset, schema), schema, schema.names).reshape(-1)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_with_little_noise_the_datasets_have_the_tables_cells(method):
    task = toy_task()

    cells = _cells(method.datasets(task)[0], task.schema)

    # Sampling 20,000 rows moves a cell by about 45; 5 of those, plus 0.5 % of the rows for a method's own error.
    assert np.abs(cells - task.confidential.counts(task.schema.names).reshape(-1)).max() < 225 + 100


@pytest.mark.parametrize("method", [Pgm(), Pep(), PrivBayes(network=NETWORK), MIRRORED], ids=lambda method: method.name)
def test_the_same_seed_gives_the_same_data(method):
    first, second = (method.datasets(toy_task(epsilon=1.0, rows=500))[0] for _ in range(2))

    assert first.equals(second)


def test_repeated_measuring_stays_within_the_one_budget():
    task = toy_task(epsilon=1.0, rows=2000)

    stddevs = tuple(m.stddev for counts in task.noisy_counts(repeats=5) for m in counts.measurements)

    assert len(stddevs) == 5
    assert PrivacyLoss(stddevs=stddevs).epsilon(2000**-2.0) <= 1.0 + 1e-6
    assert stddevs[0] == pytest.approx(stddev_for(1.0, 2000, 1) * 5**0.5, rel=1e-3)


def test_the_noise_of_the_published_toy_is_met():
    # The published figures have four digits; they are of continuous noise, up to 7e-4 smaller than discrete.
    found = [stddev_for(epsilon, 2000, 1) for epsilon in (0.1, 0.25, 0.5, 1.0)]

    assert found == pytest.approx([55.70, 23.47, 12.21, 6.37], rel=1e-3)


def test_purposes_have_unrelated_random_streams():
    task = toy_task(rows=100)
    streams = [task.generator(name).standard_normal(1000) for name in ("noise", "fit", "rows", "analysis")]

    for i, first in enumerate(streams):
        for second in streams[i + 1 :]:
            assert stats.pearsonr(first, second).pvalue > 1e-4
    same = np.random.default_rng(task.seed_of("noise")).standard_normal(1000)
    assert stats.pearsonr(streams[0], same).pvalue < 1e-4  # the twin: one stream used for two purposes


def test_pep_answers_overlapping_marginals_in_the_schemas_order():
    task = toy_task(epsilon=1000.0, rows=5000, marginals=[["x3", "x1"], ["x2", "x3"]])
    (noisy_counts,) = task.noisy_counts()

    table = project(noisy_counts, steps=2000)

    for kept, measured in zip(((0, 2), (1, 2)), noisy_counts.measurements, strict=True):
        answer_ = table.sum(axis=({0, 1, 2} - set(kept)).pop())
        assert np.abs(answer_ - measured.values / 5000).max() < 2e-3


def test_pep_equals_the_plain_update_of_the_whole_table():
    (noisy_counts,) = toy_task(epsilon=0.5, rows=500, marginals=[["x1", "x3"], ["x2", "x3"]]).noisy_counts()
    columns = [(0, 2), (1, 2)]
    wanted = [np.clip(m.values / 500, 1e-9, 1 - 1e-9) for m in noisy_counts.measurements]
    table = np.full((2, 2, 2), 1 / 8)
    for _ in range(30):  # every step sums the table anew and rescales all of it
        answers = [table.sum(axis=1), table.sum(axis=0)]
        worst = max((0, 1), key=lambda i: np.abs(wanted[i] - answers[i]).max())
        cell = np.unravel_index(np.abs(wanted[worst] - answers[worst]).argmax(), (2, 2))
        levels = dict(zip(columns[worst], cell, strict=True))
        inside = np.all([np.indices((2, 2, 2))[axis] == level for axis, level in levels.items()], axis=0)
        share = table[inside].sum()
        goal = wanted[worst][cell]
        table = np.where(inside, table * goal / share, table * (1 - goal) / (1 - share))

    assert project(noisy_counts, steps=30) == pytest.approx(table, abs=1e-12)


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


def test_aim_spends_its_budget_exactly_and_finds_the_cells():
    task, method = toy_task(epsilon=1.0), Aim(degree=3, round_iterations=50)
    budget = whole_rho(task.epsilon, task.delta)
    with double_precision():
        measured, spent = method.measured(task)
        model = estimate(task.schema, measured, task.rows, 500)

    assert concentrated_delta(task.epsilon, budget) == pytest.approx(task.delta, rel=1e-6)
    assert spent == pytest.approx(budget, rel=1e-9)
    measuring = sum(1 / m.stddev**2 for m in measured)
    assert 0.9 * budget < measuring < budget  # a tenth of every round, and nothing of the first marginals, selects
    whole = answer(model, task.schema.names, task.rows)
    stddev = min(m.stddev for m in measured)
    # The finest measurement's noise on each of 8 cells, five times.
    assert np.abs(whole - task.confidential.counts(task.schema.names).reshape(-1)).max() < 5 * stddev * 2


def test_aims_answers_are_those_of_the_package():
    task = toy_task(epsilon=1.0, rows=2000, marginals=[["x1", "x3"], ["x2", "x3"]])
    with double_precision():
        model = estimate(task.schema, task.noisy_counts()[0].measurements, task.rows, 100)
        for marginal in (("x1", "x3"), ("x1", "x2"), ("x2",)):
            theirs = np.asarray(model.project(marginal).datavector())
            assert answer(model, marginal, task.rows) == pytest.approx(theirs, abs=1e-6)


def test_the_ablation_changes_the_likelihood_and_nothing_else():
    (noisy_counts,) = toy_task(epsilon=1.0, rows=500).noisy_counts()

    unaware = as_if_exact(noisy_counts)

    assert unaware.measurements[0].stddev == 0.1
    assert (unaware.measurements[0].values == noisy_counts.measurements[0].values).all()


def test_mirroring_twice_changes_nothing_but_the_labels():
    (noisy_counts,) = toy_task(epsilon=1.0, rows=500).noisy_counts()

    once = mirrored(noisy_counts)

    assert once.measurements[0].values[0, 0, 0] == noisy_counts.measurements[0].values[1, 1, 1]
    assert (mirrored(once).measurements[0].values == noisy_counts.measurements[0].values).all()


def test_methods_do_not_touch_the_table():
    task = toy_task(epsilon=1.0, rows=500)
    before = task.confidential.codes.copy()
    PrivBayes(network=NETWORK).datasets(replace(task, seed=3))

    assert (task.confidential.codes == before).all()
