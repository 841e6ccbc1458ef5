"""`noisewise pool`: pool a table of results from any software."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from pyarrow import csv, parquet

from noisewise.artifacts import read_release
from noisewise.cli.app import Debug, command, notices, say
from noisewise.errors import AnalysisError, did_you_mean


@command("pool")
def pool_command(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet with dataset, term, estimate, std_error.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="CSV file to write; else it is shown.")] = None,
    release: Annotated[
        Path | None,
        typer.Option("--release", help="The release (folder or zip) the datasets are from: gives the three numbers."),
    ] = None,
    datasets: Annotated[int | None, typer.Option(help="How many datasets were analysed.")] = None,
    rows: Annotated[int | None, typer.Option(help="Rows of one synthetic dataset.")] = None,
    original_rows: Annotated[int | None, typer.Option(help="Rows of the confidential table.")] = None,
    rule: Annotated[
        str,
        typer.Option(
            help="fully-synthetic, normal, few-datasets, mixture; not for a release: missing-data, partially-synthetic."
        ),
    ] = "fully-synthetic",
    alpha: Annotated[float, typer.Option(help="Intervals have probability 1 - alpha.")] = 0.05,
    debug: Debug = False,
) -> None:
    """Pool estimates that were computed dataset by dataset in R, Stata, SAS or SPSS."""
    from noisewise.analysis.tables import pool_results

    if release is not None:
        released = read_release(release).datasets()
        rows = released.rows if rows is None else rows
        original_rows = released.original_rows if original_rows is None else original_rows
        datasets = len(released) if datasets is None else datasets
    pooled = pool_results(_read(table), rule=_rule(rule), rows=rows, original_rows=original_rows, datasets=datasets)
    if output is None:
        say(pooled.summary(alpha).as_text())
        return
    try:
        csv.write_csv(pa.Table.from_pandas(pooled.summary_frame(alpha), preserve_index=False), output)
    except OSError as error:
        raise AnalysisError(
            f"Cannot write {output}: {error.strerror or error}. Give a file in a folder that is there."
        ) from None
    for note in pooled.notes:
        notices.print(note, markup=False)
    say(f"{len(pooled.terms)} terms pooled over {pooled.datasets} datasets into {output}.")


def _read(path: Path) -> pa.Table:
    try:
        if path.suffix.lower() == ".parquet":
            return parquet.read_table(path)
        return csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))
    except FileNotFoundError:
        raise AnalysisError(f"{path} does not exist. Give a CSV or Parquet file.") from None
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(
            f"Cannot read {path}: {error}. Give a Parquet file, or CSV with commas between cells and points in numbers."
        ) from None


def _rule(name: str) -> Any:
    from noisewise import analysis

    rules: dict[str, type[analysis.PoolingRule]] = {
        "fully-synthetic": analysis.FullySynthetic,
        "normal": analysis.FullySyntheticNormal,
        "few-datasets": analysis.FewDatasets,
        "mixture": analysis.PosteriorMixture,
        "missing-data": analysis.MissingDataRule,
        "partially-synthetic": analysis.PartiallySynthetic,
    }
    if name not in rules:
        raise AnalysisError(f"--rule is {name!r}. {did_you_mean(name, rules)}")
    return rules[name]()
