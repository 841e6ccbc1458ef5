"""Pictures of an experiment, drawn from its tables: small SVG files whose bytes depend on the numbers only."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.measures import ALL, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "NAPSU-MQ": "#0b559f",
    "NAPSU-MQ, canonical cells": "#56a0d3",
    "NAPSU-MQ, Laplace": "#7a6fb0",
    "NAPSU-MQ, one dataset": "#9ecae1",
    "without noise awareness": "#17becf",
    "PGM": "#c0392b",
    "PGM, rounding": "#e59866",
    "PGM-repeat-5": "#e67e22",
    "PGM-repeat-10": "#b9770e",
    "PEP": "#27ae60",
    "RAP": "#8e44ad",
    "PrivBayes": "#7f8c8d",
    "PrivLCM": "#d4ac0d",
    "AIM": "#ec407a",
    "real data": "#111111",
}
"""The methods that pictures show, in their order; tables have all."""

BANDS = ("NAPSU-MQ", "PGM")
"""The methods whose bands are drawn; tables have all."""


def draw_all(folder: Path, title: str, coverage: Sequence[Row], calibration: Sequence[Row]) -> list[Path]:
    """All pictures of one experiment."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "noisewise", "font.size": 9, "axes.spines.top": False}
        | {"axes.spines.right": False, "legend.frameon": False}
    )
    pictures = {}
    for analysis in dict.fromkeys(str(row["analysis"]) for row in coverage):
        of_this = [row for row in coverage if row["analysis"] == analysis]
        suffix = "" if len({row["analysis"] for row in coverage}) == 1 else f"-{analysis.replace(' ', '-')}"
        pictures[f"coverage{suffix}"] = _by_epsilon(f"{title}: coverage of 95 % intervals ({analysis})", of_this)
        levels = [row for row in calibration if row["analysis"] == analysis]
        pictures[f"calibration{suffix}"] = _panels(
            f"{title}: actual against nominal coverage ({analysis})", levels, _calibration
        )
        pictures[f"tradeoff{suffix}"] = _panels(
            f"{title}: width of intervals against actual coverage ({analysis})", levels, _tradeoff
        )
    return [_save(figure, folder / f"{name}.svg") for name, figure in pictures.items()]


def _methods(rows: Sequence[Row]) -> list[str]:
    there = {str(row["method"]) for row in rows}
    return [method for method in COLOURS if method in there]


def _by_epsilon(title: str, rows: Sequence[Row]) -> "Figure":
    from matplotlib.figure import Figure

    joint = [row for row in rows if row["term"] == ALL] or list(rows)
    figure = Figure(figsize=(8.2, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for method in _methods(joint):
        mine = sorted((row for row in joint if row["method"] == method), key=lambda row: float(str(row["epsilon"])))
        budgets = [float(str(row["epsilon"])) for row in mine]
        low, high = ([_number(row[f"coverage_{end}"]) for row in mine] for end in ("low", "high"))
        if method in BANDS:
            left.fill_between(budgets, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
        left.plot(
            budgets, [_number(row["coverage"]) for row in mine], "o-", ms=3, lw=1.2, color=COLOURS[method], label=method
        )
        right.plot(budgets, [_number(row["width_to_real"]) for row in mine], "o-", ms=3, lw=1.2, color=COLOURS[method])
    left.axhline(0.95, color="#888888", lw=0.8, ls="--")
    left.set(ylabel="share of intervals that hold the truth", ylim=(0, 1.02))
    right.set(ylabel="width, as multiple of the real data's", yscale="log")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="ε")
    figure.suptitle(title, fontsize=10)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center")
    return figure


def _panels(title: str, rows: Sequence[Row], draw: Any) -> "Figure":
    from matplotlib.figure import Figure

    budgets = sorted({float(str(row["epsilon"])) for row in rows})
    figure = Figure(figsize=(1.6 + 2.1 * len(budgets), 2.9), layout="constrained")
    panels = figure.subplots(1, len(budgets), sharey=True, squeeze=False)[0]
    for axes, budget in zip(panels, budgets, strict=True):
        here = [row for row in rows if float(str(row["epsilon"])) == budget]
        for method in _methods(rows):
            draw(axes, method, [row for row in here if row["method"] == method])
        axes.set_title(f"ε = {budget:g}", fontsize=9)
    panels[0].set_ylabel("actual coverage" if draw is _calibration else "width, multiple of the real data's")
    for axes in panels:
        axes.set_xlabel("nominal level" if draw is _calibration else "actual coverage")
    handles, labels = next(
        (panel.get_legend_handles_labels() for panel in panels if len(panel.lines) >= len(_methods(rows))),
        panels[0].get_legend_handles_labels(),
    )
    figure.suptitle(title, fontsize=10)
    figure.legend(handles, labels, loc="outside right center")
    return figure


def _calibration(axes: "Axes", method: str, rows: Sequence[Row]) -> None:
    levels = [_number(row["level"]) for row in rows]
    low, high = ([_number(row[f"coverage_{end}"]) for row in rows] for end in ("low", "high"))
    axes.plot([0, 1], [0, 1], color="#bbbbbb", lw=0.6, ls="--")
    if method in BANDS:
        axes.fill_between(levels, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
    axes.plot(levels, [_number(row["coverage"]) for row in rows], lw=1.2, color=COLOURS[method], label=method)


def _tradeoff(axes: "Axes", method: str, rows: Sequence[Row]) -> None:
    covered, width = ([_number(row[name]) for row in rows] for name in ("coverage", "width_to_real"))
    nominal = [_number(row["level"]) for row in rows]
    scaled = [w * _normal_width(level) for w, level in zip(width, nominal, strict=True)]
    axes.plot(covered, scaled, lw=1.2, color=COLOURS[method], label=method)
    axes.set_yscale("log")


def _normal_width(level: float) -> float:
    """Width of a normal interval at a level, as a multiple of the one at 95 %."""
    from scipy.stats import norm

    return float(norm.ppf((1 + level) / 2) / norm.ppf(0.975))


def _number(value: object) -> float:
    return float("nan") if value == "" else float(str(value))


def _save(figure: "Figure", path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    text = path.read_text("utf-8")
    text = re.sub(r"(\d\.\d{2})\d+", r"\1", text)  # hundredths of a point are enough
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")
    return path
