"""`noisewise demo`: half a minute in which a newcomer sees why this exists."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from noisewise.cli.app import Debug, command, say, screen, shown_progress
from noisewise.demo import FORMULA, ROWS, TRUTH, Comparison, Interval, run_demo

WIDTH = 60
NOMINAL = 95


@command("demo")
def demo_command(
    release: Annotated[Path, typer.Option("--release", "-o", help="Folder to write; must not exist yet.")] = Path(
        "noisewise-demo"
    ),
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the table and of all but the privacy noise.")] = 0,
    replace: Annotated[bool, typer.Option("--replace", help="Remove a demo release that is there.")] = False,
    debug: Debug = False,
) -> None:
    """Draw a confidential table from a known process, release it, analyze it, and compare with the truth."""
    with shown_progress() as progress:
        made, comparison = run_demo(release, epsilon=epsilon, seed=seed, replace=replace, progress=progress)
    say(
        f"A confidential table of {ROWS:,} rows was drawn from a known process, its counts were measured with "
        f"ε = {epsilon:g},\nand 100 synthetic datasets were drawn. The analyst ran {FORMULA} (logistic).\n"
    )
    screen.print(_table(comparison))
    screen.print(_picture(comparison))
    caught = _caught(comparison)
    say(
        f"\nOf the 100 datasets, taken one by one for real data, {caught} % of the {NOMINAL} % intervals contain the "
        f"truth.\nThe pooled intervals carry the privacy noise as well as the sampling; the others do not.\n"
    )
    say(f"Release: {made.folder}/   Report: {made.folder / 'report.html'}")
    say(f"Look:    noisewise verify {made.folder}\n         noisewise analyze {made.folder}")


def _table(comparison: Comparison) -> Table:
    table = Table(title=f"{NOMINAL} % intervals, and whether they hold the truth", title_justify="left")
    for column in ("coefficient", "truth", "noisewise", "one dataset taken for real"):
        table.add_column(column, justify="left" if column == "coefficient" else "right")
    for term, pooled in comparison.pooled.items():
        single = comparison.single[term][0]
        table.add_row(term, f"{TRUTH[term]:g}", _written(pooled, TRUTH[term]), _written(single, TRUTH[term]))
    return table


def _written(interval: Interval, truth: float) -> Text:
    covers = interval.covers(truth)
    return Text(
        f"{interval.low:.2f} to {interval.high:.2f}  {'holds' if covers else 'misses'}",
        style="green" if covers else "red",
    )


def _picture(comparison: Comparison) -> Text:
    """The same intervals drawn on one scale: ● estimate, ─ interval, │ truth."""
    shown = [interval for term, one in comparison.pooled.items() for interval in (one, comparison.single[term][0])]
    low = min([*(one.low for one in shown), *TRUTH.values()])
    high = max([*(one.high for one in shown), *TRUTH.values()])
    picture = Text()
    for term, pooled in comparison.pooled.items():
        for name, interval in ((f"{term} noisewise", pooled), (f"{term} one dataset", comparison.single[term][0])):
            style = "green" if interval.covers(TRUTH[term]) else "red"
            picture.append(f"{name:>15} ")
            picture.append(_line(interval, TRUTH[term], low, high) + "\n", style=style)
    picture.append(f"{'':>15} {low:<{WIDTH // 2}.2f}{high:>{WIDTH - WIDTH // 2}.2f}   (│ is the truth)")
    return picture


def _line(interval: Interval, truth: float, low: float, high: float) -> str:
    def at(value: float) -> int:
        return round((value - low) / (high - low) * (WIDTH - 1))

    cells = [" "] * WIDTH
    cells[at(interval.low) : at(interval.high) + 1] = "─" * (at(interval.high) - at(interval.low) + 1)
    cells[at(truth)] = "│"
    cells[at(interval.estimate)] = "●"
    return "".join(cells).rstrip()


def _caught(comparison: Comparison) -> int:
    hits = [interval.covers(TRUTH[term]) for term, singles in comparison.single.items() for interval in singles]
    return round(100 * sum(hits) / len(hits))
