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
from experiments.merge import kept_cells, merged
from experiments.published import published_rows
from experiments.records import Run, write_provenance, write_table
from experiments.toy_theory import theory_rows


def write_all(experiment: Experiment, runs: Sequence[Run], folder: Path, keep: bool = False) -> list[Path]:
    """All tables and pictures of one experiment, into one folder.

    With `keep`, what the folder's tables have of more repeats stays as it is.
    """
    order = {method.name: number for number, method in enumerate(experiment.methods)}
    known = sorted(
        (run for run in runs if run.method in order and run.settings == repr(experiment.method(run.method))),
        key=lambda run: (order[run.method], run.epsilon, run.repeat),
    )
    if not known:
        raise ValueError(f"There are no runs of {experiment.name} yet. Do some with `python -m experiments run`.")
    tables: dict[str, list[Row]] = {
        "coverage": coverage_rows(experiment, known),
        "calibration": [row for row in calibration_rows(experiment, known) if row["method"] in COLOURS],
        "distances": by_budget(known, distance_row),
        "seconds": by_budget(known, time_row),
        "diagnostics": [row for row in by_budget(known, diagnostics_row) if len(row) > 3],
    }
    kept = kept_cells(folder, tables["seconds"]) if keep else set()
    tables = {name: merged(folder / f"{name}.csv", rows, kept, order) for name, rows in tables.items()}
    tables["theory"] = theory_rows(experiment.epsilons) if experiment.name == "toy" else []
    tables["published"] = published_rows(experiment.name, tables["coverage"])
    written = []
    for name, rows in tables.items():
        if rows:
            write_table(folder / f"{name}.csv", rows)
            written.append(folder / f"{name}.csv")
    write_provenance(folder / "made.json", known, sorted(kept, key=lambda cell: (order[cell[0]], float(cell[1]))))
    return [*written, *draw_all(folder, experiment.title, tables["coverage"], tables["calibration"])]
