"""Two columns measured together: the synthetic counts as a heat map, and where the noisy counts differ."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from noisewise.drawing.svg import LETTER, WIDTH, element, picture, rectangle, text

MOST_CELLS = 400
"""Most cells that are drawn."""
FAR = 3.0
"""A difference of so many spreads gets the full colour."""
_LABEL, _TOP, _WRITABLE = 104.0, 44.0, 36.0


def heat_picture(pair: dict[str, Any]) -> Markup:
    """The synthetic counts: the darker, the more."""
    top = max((value for row in pair["synthetic"] for value in row), default=0.0) or 1.0

    def cell(i: int, j: int) -> tuple[str, float, str, str]:
        value = pair["synthetic"][i][j]
        tip = f"synthetic {value:,.0f} ({pair['low'][i][j]:,.0f} to {pair['high'][i][j]:,.0f})"
        return "heat", (max(value, 0.0) / top) ** 0.5, _brief(value), tip

    return _grid(pair, cell, "synthetic counts")


def difference_picture(pair: dict[str, Any]) -> Markup:
    """Noisy less synthetic counts, in units of the spread that sampling and privacy noise give."""

    def cell(i: int, j: int) -> tuple[str, float, str, str]:
        spread = pair["spreads"][i][j]
        tip = f"noisy {pair['noisy'][i][j]:,.0f}, synthetic {pair['synthetic'][i][j]:,.0f}: {_signed(spread)} spreads"
        kind = "above" if spread > 0 else "below"
        return kind, min(1.0, abs(spread) / FAR), _signed(spread), tip

    return _grid(pair, cell, "noisy less synthetic counts, in spreads")


def _grid(pair: dict[str, Any], cell: Any, what: str) -> Markup:
    rows, columns = pair["labels"]
    height = 22.0 if len(rows) <= 20 else 14.0
    slanted = len(columns) > 3
    width = (WIDTH - _LABEL - (38 if slanted else 4)) / len(columns)
    top = _TOP + (34.0 if slanted else 0.0)
    parts = [text(WIDTH - 4, 12, f"→ {pair['columns'][1]}", "tick", "end", columns=30)]
    parts.append(text(2, 12, f"↓ {pair['columns'][0]}", "tick", "start", columns=16))
    parts += [_head(label, _LABEL + width * (j + 0.5), top - 6, width, slanted) for j, label in enumerate(columns)]
    for i, label in enumerate(rows):
        y = top + height * i
        parts.append(text(_LABEL - 6, y + height / 2 + 4, label, "word", "end", columns=12))
        for j in range(len(columns)):
            kind, strength, written, tip = cell(i, j)
            full = f"{label} × {columns[j]}: {tip}"
            parts.append(_cell(_LABEL + width * j, y, width, height, kind, strength, written, full))
    title = f"{' × '.join(pair['columns'])}: {what}, {len(rows)} by {len(columns)} cells; figures in the table below"
    return picture(WIDTH, top + height * len(rows) + 4, title, parts, "two-way")


def _head(label: str, x: float, y: float, width: float, slanted: bool) -> Markup:
    if not slanted:
        return text(x, y, label, "tick", "middle", columns=max(3, int(width / LETTER)))
    turned = text(0, 0, label, "tick", "start", columns=9)
    return element("g", turned, transform=f"translate({x:.1f} {y:.1f}) rotate(-40)")


def _cell(
    x: float, y: float, width: float, height: float, kind: str, strength: float, written: str, tip: str
) -> Markup:
    box = rectangle(
        x + 0.5,
        y + 0.5,
        width - 1,
        height - 1,
        kind,
        element("title", tip),
        fill_opacity=f"{0.04 + 0.56 * strength:.2f}",
    )
    if width < _WRITABLE or height < 16:
        return box
    return element("g", box, text(x + width / 2, y + height / 2 + 4, written, "figure", "middle"))


def _brief(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value / 1e6:.2f}M"


def _signed(spread: float) -> str:
    """One decimal with its sign, and zero without one."""
    shown = f"{spread:+.1f}"
    return "0.0" if float(shown) == 0 else shown.replace("-", "−")


def cells_of(labels: Sequence[Sequence[str]]) -> int:
    """Number of cells of a pair."""
    return len(labels[0]) * len(labels[1])
