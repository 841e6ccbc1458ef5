"""A killed run goes on where it stopped; readings, bands and widths are what they say."""

import csv
import json

import numpy as np
import pytest
from scipy import stats

from experiments.distances import distances
from experiments.experiment import Analysis
from experiments.measures import band, coverage, groups, largest_pools, width_ratio
from experiments.napsu import Napsu
from experiments.readings import LEVELS, Reading, read
from experiments.records import Records, Run
from experiments.registry import experiment_named
from experiments.run import jobs, run
from experiments.tables import write_all
from experiments_small import toy_task
from noisewise.analysis import analyze, glm
from noisewise.analysis.remedies import RidgeBootstrap
from noisewise.demo import FAMILY, FORMULA
from noisewise.posterior.laplace import Laplace

PLAIN = Analysis(name="logistic", formula=FORMULA, family=FAMILY)


def _run(repeat: int, estimate: float | None = 1.0, method: str = "a") -> Run:
    readings = tuple(
        Reading(analysis="logistic", m=1, term=term, estimate=estimate, stderr=None if estimate is None else 0.1)
        for term in ("x", "y")
    )
    return Run(
        method=method,
        settings=f"{method}()",
        epsilon=1.0,
        repeat=repeat,
        code="abc",
        seconds={"datasets": 1.0, "processor": 0.9, "analysis": 0.1},
        readings=readings,
    )


def test_what_is_added_is_read_back(tmp_path):
    records = Records(tmp_path / "deep" / "toy.jsonl")
    records.add(_run(0))
    records.add(_run(1))

    assert records.read() == [_run(0), _run(1)]
    assert records.done() == {("a()", 1.0, 0), ("a()", 1.0, 1)}


def test_a_half_written_line_is_dropped_and_done_again(tmp_path):
    records = Records(tmp_path / "toy.jsonl")
    records.add(_run(0))
    with (tmp_path / "toy.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"method": "ε a", "eps')

    assert records.done() == {("a()", 1.0, 0)}
    records.add(_run(1))
    assert records.read() == [_run(0), _run(1)]


def test_a_run_with_other_settings_replaces_the_old_one_and_was_not_done(tmp_path):
    records = Records(tmp_path / "toy.jsonl")
    records.add(_run(0))
    other = Run(method="a", settings="a(steps=2)", epsilon=1.0, repeat=0, code="abd", seconds={}, readings=())
    records.add(other)

    assert records.read() == [other]
    assert ("a()", 1.0, 0) not in records.done()


def test_coverage_counts_repeats_and_leaves_dropped_estimates_out():
    truth = {("logistic", "x"): 1.0, ("logistic", "y"): 1.0}
    (group,) = groups([_run(i, 1.0 if i < 9 else 3.0) for i in range(10)] + [_run(10, None)])

    mean, low, high = coverage(group, truth, 0.95)

    assert mean == 0.9
    assert low < 0.6  # 9 of 10 says little, however many terms there are
    assert high > 0.99


def test_the_band_is_the_t_interval_of_the_repeats():
    shares = [0.5, 1.0, 0.75, 0.75]
    half = stats.t.ppf(0.975, 3) * np.std(shares, ddof=1) / 2

    assert band(shares) == pytest.approx((0.75, 0.75 - half, 1.0))
    assert band([1.0] * 20) == pytest.approx((1.0, 0.025 ** (1 / 20), 1.0))


def test_width_ratios_compare_the_same_level():
    (group,) = groups([_run(0), _run(1)])
    normal = 2 * stats.norm.ppf(0.975) * 0.1

    assert width_ratio(group, {("logistic", "x"): normal / 3}, 0.95) == pytest.approx(3)
    assert largest_pools([_run(0)]) == {"a": 1}


def test_readings_are_those_of_the_package():
    task = toy_task(epsilon=1.0, rows=2000)
    datasets = list(Napsu(method=Laplace(), m=20).datasets(task))

    readings = read(datasets, PLAIN, (5, 10, 20), task.rows, seed=1)

    pooled = analyze(datasets, glm(FORMULA, FAMILY), original_rows=task.rows)
    ends = pooled.conf_int(0.2).to_numpy()
    mine = [reading for reading in readings if reading.m == 20]
    assert [reading.interval(0.8) for reading in mine] == [pytest.approx(tuple(row)) for row in ends]
    assert sorted({reading.m for reading in readings}) == [1, 5, 10, 20]
    single = glm(FORMULA, FAMILY).fit(datasets[:1])
    assert [r.estimate for r in readings if r.m == 1] == pytest.approx(single.values[0].tolist())


def test_bootstrap_readings_of_one_dataset_have_percentile_intervals():
    task = toy_task(epsilon=1.0, rows=2000)
    regularised = Analysis(name="r", formula=FORMULA, family=FAMILY, remedy=RidgeBootstrap(resamples=400))

    readings = read([task.confidential.table], regularised, (), task.rows, seed=1)

    plain = read([task.confidential.table], PLAIN, (), task.rows, seed=1)
    for one, other in zip(readings, plain, strict=True):
        assert len(one.ends) == 2 * len(LEVELS)
        low, high = one.interval(0.95)
        assert low < one.interval(0.5)[0] < one.estimate < one.interval(0.5)[1] < high
        usual = other.interval(0.95)
        # 400 resamples know an end to about a seventh of the standard error, a width to a twentieth.
        assert high - low == pytest.approx(usual[1] - usual[0], rel=0.15)


def test_distances_are_total_variation():
    task = toy_task(rows=1000)
    confidential = task.confidential

    flipped = task.schema.decode(np.where([True, False, False], 1 - confidential.codes, confidential.codes))

    assert distances([confidential.table], confidential) == {"1-way": 0.0, "2-way": 0.0}
    first = confidential.counts(("x1",)) / 1000
    assert distances([flipped], confidential)["1-way"] == pytest.approx(abs(first[0] - first[1]) / 3)
    both = distances([confidential.table, flipped], confidential)
    assert both["1-way"] == pytest.approx(abs(first[0] - first[1]) / 6)
    assert both["1-way, one dataset"] == 0.0


def test_tables_keep_what_has_more_repeats(tmp_path):
    experiment = experiment_named("toy")
    methods = [experiment.method(method) for method in ("PEP", "real data")]

    def done(repeats, epsilons):
        records = Records(tmp_path / f"{repeats}.jsonl")
        run(jobs(experiment, records, repeats, epsilons, methods), records, 1, lambda text: None)
        return records.read()

    write_all(experiment, done(2, (1.0,)), tmp_path)
    before = (tmp_path / "coverage.csv").read_bytes()
    fewer = done(1, (0.5, 1.0))

    write_all(experiment, fewer, tmp_path, keep=True)

    def counted():
        with (tmp_path / "coverage.csv").open(encoding="utf-8") as file:
            return {(row["method"], row["epsilon"]): row["repeats"] for row in csv.DictReader(file)}

    both = counted()
    assert both == {(m, e): n for m in ("PEP", "real data") for e, n in (("0.5", "1"), ("1", "2"))}
    assert set(before.splitlines()) < set((tmp_path / "coverage.csv").read_bytes().splitlines())
    note = json.loads((tmp_path / "made.json").read_text("utf-8"))
    assert note["kept"] == ["PEP, ε = 1", "real data, ε = 1"]
    write_all(experiment, fewer, tmp_path)
    assert set(counted().values()) == {"1"}  # unless told to, nothing is kept
