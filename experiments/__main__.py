"""`python -m experiments`: run an experiment, or go on with one; write its tables and pictures; fetch data."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from experiments.records import REPOSITORY, Records

RECORDS = REPOSITORY / "benchmarks" / "results-local"
DOCUMENTS = REPOSITORY / "docs" / "experiments"

app = typer.Typer(add_completion=False)

Names = Annotated[list[str], typer.Argument(help="toy, adult, census, census-standin, sdnist or honesty.")]


def records_of(name: str) -> Records:
    """Where the runs of an experiment are kept on this machine."""
    return Records(RECORDS / f"{name}.jsonl")


@app.callback()
def main() -> None:
    """Rerun the published experiments; each run resumes where it stopped."""


@app.command()
def run(
    names: Names,
    repeats: Annotated[int | None, typer.Option(help="Repeats; as published if not given.")] = None,
    epsilon: Annotated[list[float] | None, typer.Option(help="Budgets; as published if not given.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Methods by name; all if not given.")] = None,
    workers: Annotated[int, typer.Option(help="Processes; each takes its share of the processors.")] = 1,
    reduced: Annotated[bool, typer.Option(help="Only the methods of the reduced version.")] = False,
) -> None:
    """Do what is not done yet of one or several experiments."""
    from experiments.registry import experiment_named
    from experiments.run import jobs
    from experiments.run import run as run_jobs

    console = Console(stderr=True)
    for name in names:
        experiment = experiment_named(name)
        chosen = method or (experiment.reduced if reduced else ()) or [one.name for one in experiment.methods]
        records = records_of(name)
        todo = jobs(
            experiment,
            records,
            repeats or experiment.repeats,
            epsilon or experiment.epsilons,
            [experiment.method(one) for one in chosen],
        )
        console.print(f"{name}: {len(todo)} runs to do")
        run_jobs(todo, records, workers, lambda text: console.print(text, highlight=False))


@app.command()
def tables(
    names: Names,
    repeats: Annotated[int | None, typer.Option(help="Look at so many repeats only.")] = None,
    folder: Annotated[Path, typer.Option(help="Where they go, a folder for each experiment.")] = DOCUMENTS,
    keep: Annotated[bool, typer.Option(help="Keep what the tables there have of more repeats.")] = False,
) -> None:
    """Write tables and pictures of what was run so far."""
    from experiments.registry import experiment_named
    from experiments.tables import write_all

    for name in names:
        runs = [run for run in records_of(name).read() if repeats is None or run.repeat < repeats]
        for path in write_all(experiment_named(name), runs, folder / name, keep):
            typer.echo(path)


@app.command()
def page(
    folder: Annotated[Path, typer.Option(help="Where the tables and README.md are.")] = DOCUMENTS,
) -> None:
    """Put the tables into the page that explains them."""
    from experiments.page import filled

    path = folder / "README.md"
    path.write_text(filled(path.read_text("utf-8"), folder), "utf-8")
    typer.echo(path)


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="adult, census or sdnist.")],
    folder: Annotated[Path, typer.Option(help="Where the data go.")] = REPOSITORY / "data",
) -> None:
    """Download the tables from their publishers, check them, and put them where the experiments look."""
    from experiments.fetch import fetch as fetch_one

    for name in names:
        typer.echo(fetch_one(name, folder))


if __name__ == "__main__":
    app()
