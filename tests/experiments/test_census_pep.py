"""PEP on the census marginals: it works once answers and cells are in one order, and fails as published where not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments import census
from experiments.peers.pep import project
from experiments.task import Confidential, Task
from noisewise.workload import Workload


@pytest.fixture(scope="module")
def task(data_folder) -> Task:
    """A small stand-in table with next to no noise."""
    path = data_folder / "census1990" / "uscensus1990_chowliu_cpts_fulldata.json"
    codes = census.draw_standin(json.loads(path.read_text())["nodes"], 20_000, seed=1)
    schema = census.schema("census-standin")
    return Task(
        confidential=Confidential(schema=schema, codes=codes),
        workload=Workload.of(schema, census.MARGINALS),
        epsilon=1000.0,
        seed=1,
    )


def _largest_error(table: np.ndarray, task: Task) -> float:
    schema, errors = task.schema, []
    for marginal in task.workload.marginals:
        kept = {schema.index(name) for name in marginal}
        answer = table.sum(axis=tuple(set(range(table.ndim)) - kept))
        errors.append(np.abs(answer - task.confidential.counts(marginal) / task.rows).max())
    return float(max(errors))


def test_in_one_order_it_answers_every_marginal(task):
    (noisy_counts,) = task.noisy_counts()

    # 1,000 steps shrink the worst error of 105 cells to a tenth of a percent; noise of 1 in 20,000 rows is far below.
    assert _largest_error(project(noisy_counts, steps=1000), task) < 2e-3


def test_with_answers_in_the_queries_order_it_fails(task):
    (noisy_counts,) = task.noisy_counts()
    by_columns = {tuple(sorted(m, key=task.schema.index)): m for m in census.MARGINALS}
    shuffled = []
    for measured in noisy_counts.measurements:
        asked = by_columns[measured.marginal]
        in_query_order = np.transpose(measured.values, [measured.marginal.index(name) for name in asked])
        shuffled.append(replace(measured, values=in_query_order.reshape(measured.values.shape).copy()))

    wrong = project(replace(noisy_counts, measurements=tuple(shuffled)), steps=1000)

    assert _largest_error(wrong, task) > 0.1
