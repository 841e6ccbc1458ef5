"""Charts as matplotlib figures, for notebooks: matplotlib is imported when the first one is asked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noisewise.errors import ReleaseError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAR, BAND, NOISY = "#a9c1d9", "#1f4e79", "#b0500f"
LONGEST, MOST_WRITTEN = 24, 150


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure that is not registered anywhere, so that nothing has to be closed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ReleaseError("Pictures need one package more. Install it: pip install 'noisewise[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def bars(name: str, labels: Sequence[str], counts: np.ndarray, half: float, title: str) -> "Figure":
    """A dot per level with the interval of its noise."""
    figure = new_figure(6.4, 1.2 + 0.28 * len(labels))
    panel = figure.subplots()
    places = np.arange(len(labels))[::-1]
    panel.errorbar(counts, places, xerr=half, fmt="o", color=NOISY, label="noisy count, 95 % privacy noise interval")
    panel.set_yticks(places, [short(label) for label in labels], parse_math=False)
    panel.set_xlabel("rows")
    panel.set_title(f"{short(name)}: {title}", loc="left", fontsize="medium", parse_math=False)
    _plain(panel)
    return figure


def heat_map(names: Sequence[str], labels: Sequence[Sequence[str]], counts: np.ndarray, title: str) -> "Figure":
    """A table of counts, the darker the more; the figures are written in if they are not too many."""
    figure = new_figure(2.4 + 0.75 * len(labels[1]), 1.6 + 0.3 * len(labels[0]))
    panel = figure.subplots()
    image = panel.imshow(np.maximum(counts, 0.0), cmap="Blues", aspect="auto")
    panel.set_yticks(range(len(labels[0])), [short(label) for label in labels[0]], parse_math=False)
    panel.set_xticks(
        range(len(labels[1])), [short(label) for label in labels[1]], rotation=35, ha="right", parse_math=False
    )
    panel.set_ylabel(short(names[0]), parse_math=False)
    panel.set_xlabel(short(names[1]), parse_math=False)
    panel.set_title(title, loc="left", fontsize="medium", parse_math=False)
    if counts.size <= MOST_WRITTEN:
        dark = 0.6 * max(1.0, float(counts.max()))
        for (i, j), value in np.ndenumerate(counts):
            colour = "white" if value > dark else "black"
            panel.text(j, i, f"{value:,.0f}", ha="center", va="center", fontsize="small", color=colour)
    figure.colorbar(image, ax=panel, label="rows")
    return figure


def cells(panel: Any, title: str, labels: Sequence[str], mean: np.ndarray, ends: np.ndarray, noisy: np.ndarray) -> None:
    """Every cell's expected count with its interval, and the noisy count beside it."""
    places = np.arange(len(mean))
    panel.vlines(places, ends[0], ends[1], color=BAND, linewidth=3, label="95 % interval for the population")
    panel.plot(places, mean, "_", color=BAND, markersize=9)
    panel.plot(places + 0.18, noisy, "o", color=NOISY, markersize=3, label="noisy count")
    few = len(labels) <= 12
    panel.set_xticks(
        places if few else [], [short(x, 18) for x in labels] if few else [], rotation=35, ha="right", parse_math=False
    )
    panel.set_title(title, loc="left", fontsize="medium", parse_math=False)
    _plain(panel)


def short(text: str, longest: int = LONGEST) -> str:
    """A label that leaves room for the picture."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _plain(panel: Any) -> None:
    panel.spines[["right", "top"]].set_visible(False)
