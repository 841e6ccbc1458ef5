"""`python -m experiments`: run an experiment, or go on with one, and write its table under docs/experiments."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from experiments.records import Records, write_table

REPOSITORY = Path(__file__).parent.parent
DOCUMENTS = REPOSITORY / "docs" / "experiments"
RECORDS = REPOSITORY / "benchmarks" / "results-local"

app = typer.Typer(add_completion=False, help="Rerun the published experiments; each run resumes where it stopped.")


@app.command()
def toy(
    repeats: Annotated[int, typer.Option(help="Repeats with fresh data; 100 in the paper.")] = 20,
    epsilon: Annotated[list[float] | None, typer.Option(help="Budgets; by default the paper's six.")] = None,
) -> None:
    """The toy of two coins, with every method: coverage and width of 95 % intervals."""
    from experiments.toy import EPSILONS, METHODS, coverage_table, run

    console = Console(stderr=True)
    records = Records(RECORDS / "toy.jsonl")
    with console.status("toy") as status:
        run(records, repeats, epsilon or EPSILONS, METHODS, status.update)
    estimates = [estimate for estimate in records.read() if estimate.repeat < repeats]
    write_table(DOCUMENTS / "toy.csv", coverage_table(estimates))
    console.print(f"Wrote {DOCUMENTS / 'toy.csv'}")


if __name__ == "__main__":
    app()
