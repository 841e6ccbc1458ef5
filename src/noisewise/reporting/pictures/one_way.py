"""One column: the synthetic data's counts with their band, against the noisy counts with theirs."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from noisewise.drawing.scales import Scale, tick_text
from noisewise.drawing.svg import WIDTH, circle, element, line, picture, rectangle, text

MOST_LEVELS = 40
"""Most levels that are drawn."""
_ROW, _LABEL, _TOP, _BOTTOM = 22.0, 116.0, 4.0, 20.0


def one_way_picture(name: str, levels: Sequence[dict[str, Any]]) -> Markup:
    """A bar per level; `levels` hold label, synthetic, low, high and, where measured, noisy and its half-width."""
    shown = levels[:MOST_LEVELS]
    ends = [end for level in shown for end in _ends(level)]
    scale = Scale(low=min(0.0, *ends), high=max(1.0, *ends), start=_LABEL, stop=WIDTH - 10.0)
    bottom = _TOP + _ROW * len(shown)
    parts = [line(scale(tick), _TOP, scale(tick), bottom, "grid") for tick in scale.ticks()]
    parts += [text(scale(tick), bottom + 14, tick_text(tick), "tick", "middle") for tick in scale.ticks()]
    for row, level in enumerate(shown):
        parts += _bar(level, _TOP + _ROW * (row + 0.5), scale)
    title = f"{name}: synthetic and noisy counts of {len(shown)} levels; the figures are in the table below"
    return picture(WIDTH, bottom + _BOTTOM, title, parts, "one-way")


def _ends(level: dict[str, Any]) -> list[float]:
    noisy = level["noisy"]
    measured = [] if noisy is None else [noisy - level["noise"], noisy + level["noise"]]
    return [level["low"], level["high"], level["synthetic"], *measured]


def _bar(level: dict[str, Any], y: float, scale: Scale) -> list[Markup]:
    start = scale(0.0)
    parts = [
        text(_LABEL - 8, y + 4, level["label"], "word", "end", columns=14),
        rectangle(start, y - 7, scale(level["synthetic"]) - start, 14, "bar"),
        rectangle(scale(level["low"]), y - 4, max(1.5, scale(level["high"]) - scale(level["low"])), 8, "band"),
    ]
    if level["noisy"] is not None:
        low, high = scale(level["noisy"] - level["noise"]), scale(level["noisy"] + level["noise"])
        parts += [line(low, y, high, y, "noise"), circle(scale(level["noisy"]), y, 3, "dot")]
    tip = f"{level['label']}: synthetic {level['synthetic']:,.0f} ({level['low']:,.0f} to {level['high']:,.0f})"
    if level["noisy"] is not None:
        tip += f", noisy {level['noisy']:,.0f} ± {level['noise']:,.0f}"
    return [element("g", element("title", tip), *parts)]
