"""Coefficients: every term's pooled interval, and the interval of one dataset taken for real below it."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from noisewise.drawing.scales import Scale, tick_text
from noisewise.drawing.svg import circle, element, line, picture, text

WIDTH = 340
"""Natural width of the picture."""
_ROW, _TOP, _BOTTOM, _SIDE = 46.0, 6.0, 24.0, 10.0
_REACH = 4.0  # how far beyond the single intervals a pooled one is drawn, in widths of them all


def interval_picture(title: str, rows: Sequence[dict[str, Any]]) -> Markup:
    """A line per term; `rows` hold term, estimate, low, high, naive (with low and high) and marks."""
    low, high = _ends(rows)
    scale = Scale(low=low, high=high, start=_SIDE, stop=WIDTH - _SIDE)
    bottom = _TOP + _ROW * len(rows)
    parts = [line(scale(tick), _TOP, scale(tick), bottom, "grid") for tick in scale.ticks(5)]
    parts += [text(scale(tick), bottom + 15, tick_text(tick), "tick", "middle") for tick in scale.ticks(5)]
    parts.append(line(scale(0.0), _TOP, scale(0.0), bottom, "zero"))
    for number, row in enumerate(rows):
        parts.append(_term(row, _TOP + _ROW * number, scale))
    sentence = f"95 % intervals of {len(rows)} terms of {title}; the figures are in the table below"
    return picture(WIDTH, bottom + _BOTTOM, sentence, parts, "intervals")


def _ends(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Ends of the scale: zero and all intervals, but one that dwarfs the others is cut off and gets arrows."""
    singles = [end for row in rows if row["naive"] for end in (row["naive"]["low"], row["naive"]["high"])]
    inner = [0.0, *(row["estimate"] for row in rows), *singles]
    reach = _REACH * ((max(inner) - min(inner)) or 1.0)
    low = max(min(inner) - reach, min([0.0, *(row["low"] for row in rows), *singles]))
    high = min(max(inner) + reach, max([0.0, *(row["high"] for row in rows), *singles]))
    margin = 0.03 * ((high - low) or 1.0)
    return low - margin, high + margin


def _term(row: dict[str, Any], y: float, scale: Scale) -> Markup:
    marks = f" {row['marks']}" if row["marks"] else ""
    kind = "pooled" if row["supported"] is not False else "pooled doubtful"
    parts = [text(_SIDE, y + 13, row["term"] + marks, "word", columns=44)]
    parts += [line(scale(row["low"]), y + 24, scale(row["high"]), y + 24, kind)]
    parts += [circle(scale(row["estimate"]), y + 24, 4, kind)]
    parts += [
        _arrow(scale(end), y + 24, end > 0) for end in (row["low"], row["high"]) if not scale.low <= end <= scale.high
    ]
    if row["naive"]:
        parts.append(line(scale(row["naive"]["low"]), y + 34, scale(row["naive"]["high"]), y + 34, "naive"))
        parts.append(circle(scale(row["naive"]["estimate"]), y + 34, 2.5, "naive"))
    tip = f"{row['term']}: {row['estimate']:.4g} ({row['low']:.4g} to {row['high']:.4g})"
    return element("g", element("title", tip), *parts)


def _arrow(x: float, y: float, right: bool) -> Markup:
    way = 6 if right else -6
    return element("path", d=f"M{x - way:.1f} {y - 5:.1f}L{x:.1f} {y:.1f}L{x - way:.1f} {y + 5:.1f}", class_="arrow")
