"""The picture of a pooled result: its interval against those of the single datasets, term by term."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.errors import AnalysisError, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from noisewise.analysis.pooled import Pooled
    from noisewise.analysis.pooling import PooledEstimate

MOST_SINGLE = 50
"""Most single datasets drawn; more would be a grey block."""
WIDEST = 3.0
"""How far the pooled interval is drawn beyond the single ones, in widths of all of these."""
SINGLE, POOLED, REFERENCE = "#b0b7bf", "#0b4f8a", "#c8541a"


def interval_plot(
    result: "Pooled", terms: Sequence[str] | None = None, *, reference: Any = None, alpha: float = 0.05
) -> "Figure":
    """One panel per term: the intervals of single datasets in grey, the pooled one below them in blue.

    `reference` holds values to compare with: a mapping from terms, or a fitted result with `params` and `conf_int`.
    """
    figure_class = _matplotlib()
    chosen = _chosen(result, terms)
    values, intervals = _reference(reference, alpha)
    unknown = [name for name in values if name not in result.terms]
    if reference is not None and not set(values) & set(chosen):
        raise AnalysisError(
            f"The reference has none of the terms: it has {', '.join(map(repr, unknown))}, the picture has "
            f"{', '.join(map(repr, chosen))}. Name its values after the terms."
        )
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = figure_class(figsize=(4.0 * columns, 1.0 + 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, term in zip(panels, chosen, strict=False):
        _draw(panel, result, result.terms.index(term), alpha)
        if term in values:
            _draw_reference(panel, values[term], intervals.get(term))
    for panel in panels[len(chosen) :]:
        panel.set_axis_off()
    handles = {label: line for panel in panels for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _draw(panel: Any, result: "Pooled", term: int, alpha: float) -> None:
    low, high = _single_intervals(result, term, alpha)
    drawn = _spread(len(low), MOST_SINGLE)
    heights = np.arange(len(drawn), 0, -1)
    percent = f"{100 * (1 - alpha):g} %"
    label = f"single datasets, {percent}" + (f" ({len(drawn)} of {len(low)})" if len(drawn) < len(low) else "")
    panel.hlines(heights, low[drawn], high[drawn], color=SINGLE, linewidth=0.8, label=label)
    room = max(2.0, 0.12 * len(drawn))
    _draw_pooled(panel, result.pooled[term], alpha, -room / 2, (low.min(), high.max()))
    panel.set_ylim(-room, len(drawn) + 1)
    panel.set_yticks([])
    panel.spines[["left", "right", "top"]].set_visible(False)
    mark = " †" if result.terms[term] in result.unsupported else ""
    panel.set_title(result.terms[term] + mark, fontsize="medium", loc="left", parse_math=False)


def _draw_pooled(panel: Any, one: "PooledEstimate", alpha: float, height: float, single: tuple[float, float]) -> None:
    """The pooled interval; an end so far away that the others could not be seen becomes an arrow."""
    low, high = one.reference.interval(alpha)
    span = single[1] - single[0]
    left, right = max(low, single[0] - WIDEST * span), min(high, single[1] + WIDEST * span)
    panel.hlines(height, left, right, color=POOLED, linewidth=3, label=f"pooled, {100 * (1 - alpha):g} %")
    panel.plot([one.estimate], [height], "o", color=POOLED, markersize=5)
    for end, drawn, arrow in ((low, left, "<"), (high, right, ">")):
        if end != drawn:
            panel.plot([drawn], [height], arrow, color=POOLED, markersize=9)


def _draw_reference(panel: Any, value: float, interval: tuple[float, float] | None) -> None:
    panel.axvline(value, color=REFERENCE, linewidth=1.2, linestyle="--", label="reference")
    if interval is not None:
        panel.axvspan(*interval, color=REFERENCE, alpha=0.12, linewidth=0)


def _single_intervals(result: "Pooled", term: int, alpha: float) -> tuple[ndarray, ndarray]:
    """Normal intervals of the datasets that entered: what one would get from a dataset taken for real."""
    from scipy.special import ndtri

    used = result.estimates.used[:, term]
    values = result.estimates.values[used, term]
    half = float(ndtri(1 - alpha / 2)) * np.sqrt(result.estimates.variances[used, term])
    return values - half, values + half


def _spread(count: int, most: int) -> Float[ndarray, " drawn"] | Any:
    """Positions of all, or of `most` that are spread evenly."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).round().astype(int)


def _chosen(result: "Pooled", terms: Sequence[str] | None) -> tuple[str, ...]:
    chosen = tuple(result.terms if terms is None else terms)
    for term in chosen:
        if term not in result.terms:
            raise AnalysisError(f"The result has no term {term!r}. {did_you_mean(term, result.terms)}")
    if not chosen:
        raise AnalysisError("No terms to draw. Name at least one.")
    return chosen


def _reference(reference: Any, alpha: float) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Values, and where the reference is a fitted result its intervals, by term."""
    if reference is None:
        return {}, {}
    if hasattr(reference, "params") and hasattr(reference, "conf_int"):
        table = reference.conf_int(alpha)
        if not hasattr(reference.params, "items") or not hasattr(table, "loc"):
            raise AnalysisError("The reference's terms have no names. Give a mapping from terms to values.")
        return (
            {str(name): float(value) for name, value in reference.params.items()},
            {str(name): (float(table.loc[name].iloc[0]), float(table.loc[name].iloc[1])) for name in table.index},
        )
    if not isinstance(reference, Mapping) and not hasattr(reference, "items"):
        raise AnalysisError(
            f"The reference is a {type(reference).__name__}. Give a mapping from terms to values, or a fitted result."
        )
    return {str(name): float(value) for name, value in reference.items()}, {}


def _matplotlib() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise AnalysisError("Pictures need one package more. Install it: pip install 'noisewise[plot]'") from None
    return Figure
