"""The graph of marginals: which columns were measured together."""

from collections.abc import Sequence
from itertools import combinations

from markupsafe import Markup

from noisewise.drawing.svg import columns_of, element, line, picture, rectangle, shortened, text
from noisewise.reporting.pictures.layout import Point, places

WIDTH = 620
"""Natural width of the picture."""
MOST_COLUMNS = 80
"""Beyond this the graph is a list only."""
_HIGH, _LETTER, _LONGEST = 24.0, 7.8, 20


def graph_picture(names: Sequence[str], marginals: Sequence[Sequence[str]]) -> Markup:
    """Columns as boxes, a line between any two that were measured together, a shade over three or more."""
    position = {name: i for i, name in enumerate(names)}
    groups = [tuple(sorted(position[name] for name in marginal)) for marginal in marginals]
    edges = sorted({edge for group in groups for edge in combinations(group, 2)})
    sizes = [_LETTER * min(_LONGEST, columns_of(name)) + 18 for name in names]
    height = min(760.0, 150.0 + 27.0 * len(names))
    points = _spread(_scaled(places(len(names), edges), sizes, height), sizes, height)
    measured = {i for group in groups for i in group}
    parts = [_shade([points[i] for i in group]) for group in groups if len(group) > 2]
    parts += [line(*points[a], *points[b], "edge") for a, b in edges]
    parts += [
        element(
            "g",
            element("title", name + ("" if i in measured else " (not measured)")),
            rectangle(x - size / 2, y - _HIGH / 2, size, _HIGH, "node" if i in measured else "node alone", rx=4),
            text(x, y + 4.5, shortened(name, _LONGEST), "word", "middle"),
        )
        for i, (name, size, (x, y)) in enumerate(zip(names, sizes, points, strict=True))
    ]
    title = f"Graph of {len(names)} columns, with a line between any two of the {len(edges)} pairs measured together"
    return picture(WIDTH, height, title, parts, "graph")


def _scaled(points: list[Point], sizes: list[float], height: float) -> list[Point]:
    margin = max(sizes) / 2 + 2
    return [(margin + x * (WIDTH - 2 * margin), 16 + y * (height - 32)) for x, y in points]


def _spread(points: list[Point], sizes: list[float], height: float, rounds: int = 200) -> list[Point]:
    """Push boxes that overlap apart, up and down."""
    ys = [y for _, y in points]
    for _ in range(rounds):
        pushed = False
        for i, j in combinations(range(len(points)), 2):
            if abs(points[i][0] - points[j][0]) >= (sizes[i] + sizes[j]) / 2 + 8:
                continue
            gap = _HIGH + 8 - abs(ys[i] - ys[j])
            if gap > 0.05:
                up, down = (i, j) if (ys[i], i) < (ys[j], j) else (j, i)
                ys[up], ys[down], pushed = ys[up] - gap / 2, ys[down] + gap / 2, True
        ys = [min(max(y, _HIGH / 2 + 2), height - _HIGH / 2 - 2) for y in ys]
        if not pushed:
            break
    return [(x, y) for (x, _), y in zip(points, ys, strict=True)]


def _shade(points: list[Point]) -> Markup:
    """The area between the columns of a marginal of three or more, in the order around their middle."""
    x0, y0 = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    ordered = sorted(points, key=lambda p: (_turn(p[0] - x0, p[1] - y0), p))
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in ordered), class_="shade")


def _turn(x: float, y: float) -> float:
    """Grows with the angle around the middle, without trigonometry."""
    share = y / ((abs(x) + abs(y)) or 1.0)
    return 2 - share if x < 0 else share if y >= 0 else 4 + share
