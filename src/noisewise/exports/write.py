"""Writing exports: a folder of files, or one archive with all datasets stacked."""

import csv
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisewise.errors import ReleaseError
from noisewise.exports.formats import Format
from noisewise.exports.notes import how_to_analyse
from noisewise.progress import Progress, silent
from noisewise.schema import Categorical
from noisewise.synthesis import SyntheticDatasets

NOTE = "HOW-TO-ANALYSE.txt"
SCHEMA = "schema.toml"
LEVELS = "levels.csv"
"""The levels of every category in the schema's order, for software that cannot read TOML."""
MAX_STACKED_CELLS = 2_000_000_000
"""Most cells of a stacked table, which is built in memory."""


def export(
    datasets: SyntheticDatasets, folder: str | Path, format: Format, *, progress: Progress = silent
) -> list[Path]:
    """Write every dataset to a file of its own, with a note on how to analyse them and the schema.

    The folder must not exist yet; it appears in one piece when all is written.
    """
    folder = Path(folder)
    note = how_to_analyse(datasets, format.reading)
    digits = max(3, len(str(len(datasets))))
    with _in_one_piece(folder) as partial:
        for number in range(len(datasets)):
            progress("writing datasets", number, len(datasets))
            path = partial / f"dataset-{number + 1:0{digits}d}{format.suffix}"
            format.write(datasets[number], datasets.schema, path, note)
        _write_beside(partial, datasets, note)
    return sorted(folder.iterdir())


def export_stacked(
    datasets: SyntheticDatasets, archive: str | Path, format: Format, *, progress: Progress = silent
) -> Path:
    """Write one zip archive with all datasets in one table, as users of `mice` and its like expect.

    Two columns come first, named as the software expects: the dataset's number and the row's, both from 1. There is
    no dataset 0: the original data are not released.
    """
    archive = Path(archive)
    if archive.suffix.lower() != ".zip":
        raise ReleaseError(
            f"{archive} does not end in .zip. The stacked datasets go into a zip archive with their note."
        )
    cells = len(datasets) * datasets.rows * len(datasets.schema.names)
    if cells > MAX_STACKED_CELLS:
        raise ReleaseError(
            f"Stacked, the datasets have {cells:,} cells, too many for one file. Export them one by one."
        )
    note = how_to_analyse(datasets, format.reading, stacked_by=format.index[0])
    with _in_one_piece(archive) as partial:
        content = partial.with_name("content")
        content.mkdir()
        stacked = _stacked(datasets, format.index, progress)
        format.write(stacked, datasets.schema, content / f"datasets{format.suffix}", note)
        _write_beside(content, datasets, note)
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(content.iterdir()):
                file.write(path, path.name)
    return archive


def _stacked(datasets: SyntheticDatasets, index: tuple[str, str], progress: Progress) -> pa.Table:
    tables = []
    for number in range(len(datasets)):
        progress("stacking datasets", number, len(datasets))
        table = datasets[number]
        numbers = pa.array(np.full(len(table), number + 1))
        rows = pa.array(np.arange(1, len(table) + 1))
        tables.append(table.add_column(0, index[1], rows).add_column(0, index[0], numbers))
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _write_beside(folder: Path, datasets: SyntheticDatasets, note: str) -> None:
    (folder / NOTE).write_text(note, "utf-8")
    (folder / SCHEMA).write_text(datasets.schema.to_toml(), "utf-8")
    levels = [
        (column.name, label)
        for column in datasets.schema.columns
        if isinstance(column, Categorical)
        for label in column.declared_labels
    ]
    with (folder / LEVELS).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("column", "level"), *levels])


@contextmanager
def _in_one_piece(target: Path) -> Iterator[Path]:
    """A place beside the target to write to; it becomes the target at the end, and nothing is left on failure."""
    if target.exists():
        raise ReleaseError(f"{target} is already there. Give another name, or remove it first.")
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        partial = workshop / "whole"
        if target.suffix.lower() != ".zip":
            partial.mkdir()
        yield partial
        partial.rename(target)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
