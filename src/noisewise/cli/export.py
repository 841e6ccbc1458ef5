"""`noisewise export`: a release's datasets as files for other software."""

from pathlib import Path
from typing import Annotated

import typer

from noisewise.artifacts import read_release
from noisewise.cli.app import Debug, ReleaseFolder, command, say, shown_progress
from noisewise.errors import AnalysisError, did_you_mean


@command("export")
def export_command(
    release: ReleaseFolder,
    target: Annotated[Path, typer.Argument(help="Folder to write, or a .zip file with --stacked.")],
    format: Annotated[str, typer.Option("--format", "-f", help="csv, parquet, stata or spss.")] = "csv",
    stacked: Annotated[
        bool, typer.Option("--stacked", help="All datasets in one table with a column for their number.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Write a release's synthetic datasets as CSV, Parquet, Stata or SPSS files, with a note on analysing them."""
    from noisewise.exports import export, export_stacked
    from noisewise.exports.formats import FORMATS

    if format not in FORMATS:
        raise AnalysisError(f"--format is {format!r}. {did_you_mean(format, FORMATS)}")
    datasets = read_release(release).datasets()
    write = export_stacked if stacked else export
    with shown_progress() as progress:
        write(datasets, target, FORMATS[format], progress=progress)
    say(f"{len(datasets)} datasets of {datasets.rows:,} rows written to {target}. Read HOW-TO-ANALYSE.txt there.")
