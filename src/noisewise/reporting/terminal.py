"""The gist of the report for a terminal: the headline, a bar per marginal, a coefficient plot in text."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from noisewise.drawing.legible import legible_values
from noisewise.drawing.svg import shortened

STYLES = {"good": "green", "care": "yellow", "bad": "red"}
SIGNS = {"good": "✓", "care": "△", "bad": "✕"}
WORDS = {"holds": "good", "doubtful": "care", "fails": "bad"}
WIDTH, LABEL, MOST = 44, 30, 40


def shown(content: Mapping[str, Any], time: str = "") -> Iterator[Text | Table]:
    """What to print, part by part; `time` is what the fit took, where that is known."""
    content = legible_values(content)
    yield headline(content)
    if content["posterior"]:
        yield fitness(content["posterior"], time)
    yield noise_bars(content["measurements"]["marginals"])
    for result in content["results"]:
        yield intervals(result)
    if content["certificate"]:
        yield from certificate_parts(content["certificate"])


def headline(content: Mapping[str, Any]) -> Text:
    """The verdict with its reasons, the promise, and what is supported."""
    head = content["headline"]
    style = STYLES[head["level"]]
    text = Text()
    text.append(f"{content['table']}: ", style="bold")
    text.append(f"{content['datasets']} synthetic datasets of {content['dataset_rows']:,} rows\n")
    text.append(f"{SIGNS[head['level']]} {head['verdict']}\n", style=f"bold {style}")
    for reason in head["reasons"]:
        text.append(f"  {reason}\n")
    text.append(f"\n{head['promise']}\n")
    for analysis in head["analyses"]:
        text.append(f"\n{analysis['formula']}: ")
        text.append(f"{SIGNS[analysis['level']]} {analysis['word']}", style=STYLES[analysis["level"]])
    return text.append("\n")


def fitness(posterior: Mapping[str, Any], time: str = "") -> Text:
    """Whether the posterior passed its checks, what was done about doubts, and the time it took."""
    level = "good" if posterior["trusted"] else "bad"
    text = Text("Posterior\n", style="bold")
    text.append(f"{SIGNS[level]} {posterior['method']}: ", style=STYLES[level])
    text.append(f"{posterior['summary']}\n")
    for sentence in [*posterior["reasons"], *posterior.get("done", ())]:
        text.append(f"  {sentence}\n")
    return text.append(f"  The fit took {time}.\n" if time else "")


def noise_bars(marginals: Sequence[Mapping[str, Any]]) -> Text:
    """A bar per marginal on a logarithmic scale: noise relative to the average count."""
    text = Text("Noise as a share of the average count, in tenfold steps\n", style="bold")
    shown_ = marginals[:MOST]
    powers = [math.log10(one["relative"]) for one in shown_]
    low, high = min([-3.0, *map(math.floor, powers)]), max([0.0, *powers])
    for one, power in zip(shown_, powers, strict=True):
        name = shortened(" × ".join(one["columns"]), LABEL)
        bar = "█" * max(1, round((power - low) / (high - low) * WIDTH))
        text.append(f"{name:<{LABEL}} ")
        text.append(bar, style="yellow" if one["relative"] > 1 else "blue")
        text.append(f" {100 * one['relative']:,.3g} %\n")
    if len(marginals) > MOST:
        text.append(f"… and {len(marginals) - MOST} more\n")
    return text


def intervals(result: Mapping[str, Any]) -> Text:
    """Every term's pooled interval, and below it that of one dataset taken for real."""
    text = Text(f"{result['title']}\n", style="bold")
    rows = result["rows"][:MOST]
    inner = [0.0, *(row["estimate"] for row in rows)]
    inner += [end for row in rows if row["naive"] for end in (row["naive"]["low"], row["naive"]["high"])]
    reach = 2 * ((max(inner) - min(inner)) or 1.0)
    low = max(min(inner) - reach, min([*inner, *(row["low"] for row in rows)]))
    high = min(max(inner) + reach, max([*inner, *(row["high"] for row in rows)]))
    for row in rows:
        label = shortened(f"{row['term']} {row['marks']}".strip(), LABEL)
        text.append(f"{label:<{LABEL}} ")
        text.append(_line(row, low, high, "━"), style="blue" if row["supported"] is not False else "yellow")
        text.append(f" {row['estimate']:.3g} ({row['low']:.3g} to {row['high']:.3g})\n")
        if row["naive"]:
            text.append(" " * (LABEL + 1))
            text.append(_line(row["naive"], low, high, "─").rstrip() + "\n", style="bright_black")
    text.append(f"{'':<{LABEL}} {low:<{WIDTH // 2}.3g}{high:>{WIDTH - WIDTH // 2}.3g}\n")
    text.append(
        "━ pooled, 95 % interval for the population   ─ one dataset taken for real: too short   │ zero\n"
        "† not supported by what was measured   ‡ fallback used   ! read with care\n",
        style="bright_black",
    )
    return text


def _line(row: Mapping[str, Any], low: float, high: float, stroke: str) -> str:
    def at(value: float) -> int:
        return round(min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0) * (WIDTH - 1))

    cells = [" "] * WIDTH
    cells[at(0.0)] = "│"
    cells[at(row["low"]) : at(row["high"]) + 1] = stroke * (at(row["high"]) - at(row["low"]) + 1)
    cells[at(row["estimate"])] = "●"
    return "".join(cells)


def certificate_parts(certificate: Mapping[str, Any]) -> Iterator[Text | Table]:
    """A certificate, analysis by analysis: verdict and coverage by term, and the reasons of all that does not hold."""
    for analysis in legible_values(certificate)["analyses"]:
        yield _certificate_table(analysis, certificate["repeats"])
        if analysis["stress"]:
            yield Text(analysis["stress"])
        for term in analysis["terms"]:
            if term["reasons"]:
                style = STYLES[WORDS[term["verdict"]]]
                yield Text.assemble(f"{term['term']}: ", (term["verdict"], style), f". {' '.join(term['reasons'])}")


def _certificate_table(analysis: Mapping[str, Any], repeats: int) -> Table:
    """Verdict and coverage by term."""
    title = Text(f"Coverage certificate: {analysis['title']} ({repeats} rehearsals)")
    table = Table(title=title, title_justify="left")
    for head in ("term", "verdict", "95 % intervals cover", "width / without privacy"):
        table.add_column(head)
    for term in analysis["terms"]:
        own, level = term["levels"][-1], WORDS[term["verdict"]]
        covered = f"{own['hits']} of {own['repeats']} [{own['low']:.2f}, {own['high']:.2f}]"
        word = Text(f"{SIGNS[level]} {term['verdict']}", style=STYLES[level])
        table.add_row(Text(term["term"]), word, covered, f"{own['width_ratio']:.3g}")
    return table
