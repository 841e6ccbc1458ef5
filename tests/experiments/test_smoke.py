"""Every experiment from its definition to its tables and pictures, on one repeat of what is cheap."""

import pytest

from experiments.measures import ALL
from experiments.records import Records
from experiments.registry import HOMES, experiment_named
from experiments.run import jobs, run
from experiments.tables import write_all

CHEAP = {"toy": ("NAPSU-MQ", "PGM", "PEP", "real data"), "sdnist": ("PEP", "real data"), "adult": ("real data",)}


@pytest.mark.parametrize("name", list(CHEAP))
def test_an_experiment_runs_and_writes_its_tables(name, data_folder, monkeypatch, tmp_path):
    monkeypatch.setenv("NOISEWISE_DATA", str(data_folder))
    experiment, records = experiment_named(name), Records(tmp_path / "records.jsonl")
    methods = [experiment.method(method) for method in CHEAP[name]]

    run(jobs(experiment, records, 1, experiment.epsilons[-1:], methods), records, 1, lambda text: None)

    assert jobs(experiment, records, 1, experiment.epsilons[-1:], methods) == []  # a second call has nothing to do
    written = {path.name for path in write_all(experiment, records.read(), tmp_path / name)}
    assert {"coverage.csv", "calibration.csv", "distances.csv", "seconds.csv"} <= written
    assert any(path.endswith(".svg") for path in written)
    again = write_all(experiment, records.read(), tmp_path / "again")
    assert all(path.read_bytes() == (tmp_path / name / path.name).read_bytes() for path in again)
    assert ALL in (tmp_path / name / "coverage.csv").read_text()


@pytest.mark.parametrize("name", list(HOMES))
def test_every_experiment_names_its_methods_once(name):
    experiment = experiment_named(name)
    names = [method.name for method in experiment.methods]

    assert len(set(names)) == len(names)
    assert set(experiment.reduced) <= set(names)
    with pytest.raises(ValueError, match="is not a method"):
        experiment.method("magic")


@pytest.mark.slow
def test_workers_give_what_one_process_gives(tmp_path):
    experiment = experiment_named("toy")
    methods = [experiment.method(method) for method in ("NAPSU-MQ", "PEP")]
    found = []
    for workers in (1, 2):
        records = Records(tmp_path / f"{workers}.jsonl")
        run(jobs(experiment, records, 2, (0.5, 1.0), methods), records, workers, lambda text: None)
        found.append({(r.method, r.epsilon, r.repeat): r.readings for r in records.read()})

    assert found[0] == found[1]
