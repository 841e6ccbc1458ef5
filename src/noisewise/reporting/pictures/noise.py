"""The noise of every marginal beside its counts: a bar each, on a logarithmic scale."""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from noisewise.drawing.scales import Scale
from noisewise.drawing.svg import element, line, picture, rectangle, text

WIDTH = 340
"""Natural width of the picture."""
MOST_MARGINALS = 60
"""Most marginals that are drawn."""
_ROW, _TOP, _BOTTOM, _SIDE = 34.0, 4.0, 22.0, 10.0


def noise_picture(marginals: Sequence[dict[str, Any]]) -> Markup:
    """A bar per marginal: the standard deviation of its noise as a share of its average count."""
    shown = marginals[:MOST_MARGINALS]
    low = math.floor(math.log10(min([0.001, *(one["relative"] for one in shown)])))
    high = math.ceil(math.log10(max([1.0, *(one["relative"] for one in shown)])) + 1e-9)
    scale = Scale(low=float(low), high=float(high), start=_SIDE, stop=WIDTH - 28.0)
    bottom = _TOP + _ROW * len(shown)
    powers = list(range(low, high + 1))
    parts = [line(scale(power), _TOP, scale(power), bottom, "zero" if power == 0 else "grid") for power in powers]
    for power in powers:
        anchor = "start" if power == low else "middle"
        parts.append(text(scale(power), bottom + 15, f"{10.0 ** (power + 2):,g} %", "tick", anchor))
    for number, one in enumerate(shown):
        y = _TOP + _ROW * number
        kind = "noise-bar much" if one["relative"] > 1 else "noise-bar"
        end = scale(math.log10(one["relative"]))
        tip = f"{' × '.join(one['columns'])}: noise {one['noise']:g} in counts of {one['average']:,.4g} on average"
        name = text(_SIDE, y + 14, " × ".join(one["columns"]), "word", columns=44)
        parts.append(element("g", element("title", tip), name, rectangle(_SIDE, y + 19, end - _SIDE, 9, kind)))
    title = f"Privacy noise relative to the average count of {len(shown)} marginals; the figures are in the table below"
    return picture(WIDTH, bottom + _BOTTOM, title, parts, "noise-picture")
