"""Write what an experiment has shown: tables as CSV, pictures as SVG, and a note of what made them."""

from collections.abc import Sequence
from pathlib import Path

from experiments.experiment import Experiment
from experiments.figures import COLOURS, draw_all
from experiments.measures import (
    Row,
    by_budget,
    calibration_rows,
    coverage_rows,
    diagnostics_row,
    distance_row,
    time_row,
)
from experiments.published import published_rows
from experiments.records import Run, write_provenance, write_table
from experiments.toy_theory import theory_rows


def write_all(experiment: Experiment, runs: Sequence[Run], folder: Path, pictures: bool = True) -> list[Path]:
    """All tables and pictures of one experiment, into one folder."""
    order = {method.name: number for number, method in enumerate(experiment.methods)}
    known = sorted(
        (run for run in runs if run.method in order and run.settings == repr(experiment.method(run.method))),
        key=lambda run: (order[run.method], run.epsilon, run.repeat),
    )
    if not known:
        raise ValueError(f"There are no runs of {experiment.name} yet. Do some with `python -m experiments run`.")
    coverage, calibration = coverage_rows(experiment, known), calibration_rows(experiment, known)
    tables: dict[str, list[Row]] = {
        "coverage": coverage,
        "calibration": [row for row in calibration if row["method"] in COLOURS],
        "theory": theory_rows(experiment.epsilons) if experiment.name == "toy" else [],
        "published": published_rows(experiment.name, coverage),
        "distances": by_budget(known, distance_row),
        "seconds": by_budget(known, time_row),
        "diagnostics": [row for row in by_budget(known, diagnostics_row) if len(row) > 3],
    }
    written = []
    for name, rows in tables.items():
        if rows:
            write_table(folder / f"{name}.csv", rows)
            written.append(folder / f"{name}.csv")
    write_provenance(folder / "made.json", known)
    drawn = draw_all(folder, experiment.title, coverage, calibration) if pictures else []
    return [*written, *drawn]
