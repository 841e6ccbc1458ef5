"""Where the columns go in the graph of marginals: near what they were measured with.

Distances on paper are brought close to distances in the graph by majorising the stress (de Leeuw 1977; Gansner,
Koren & North 2004). It starts from a circle in the schema's order and only adds, multiplies and divides, so that the
same graph gives the same picture everywhere; nothing is drawn at random.
"""

import math
from collections import deque
from collections.abc import Sequence

Point = tuple[float, float]
APART = 1.4
"""How much farther apart than the farthest connected ones two unconnected columns are put."""


def places(count: int, edges: Sequence[tuple[int, int]], rounds: int | None = None) -> list[Point]:
    """Places of the nodes 0 … count - 1 in the unit square; connected ones close together."""
    if count == 1:
        return [(0.5, 0.5)]
    wanted = _distances(count, edges)
    points = [
        (round(math.cos(2 * math.pi * i / count), 6), round(math.sin(2 * math.pi * i / count), 6)) for i in range(count)
    ]
    scale = max(max(row) for row in wanted) / 2
    points = [(x * scale, y * scale) for x, y in points]
    for _ in range(rounds or max(10, min(200, 400_000 // count**2))):
        points = _step(points, wanted)
    return _to_unit_square(points)


def _step(points: list[Point], wanted: list[list[float]]) -> list[Point]:
    """Every node moves to where the others, each at its wanted distance along the present direction, would have it."""
    moved = []
    for i, (xi, yi) in enumerate(points):
        total = x = y = 0.0
        for j, (xj, yj) in enumerate(points):
            if i == j:
                continue
            weight = 1 / wanted[i][j] ** 2
            distance = math.sqrt((xi - xj) ** 2 + (yi - yj) ** 2) or 1e-6
            total += weight
            x += weight * (xj + wanted[i][j] * (xi - xj) / distance)
            y += weight * (yj + wanted[i][j] * (yi - yj) / distance)
        moved.append((x / total, y / total))
    return moved


def _distances(count: int, edges: Sequence[tuple[int, int]]) -> list[list[float]]:
    """Steps between every two nodes."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    steps = [_steps_from(start, neighbours) for start in range(count)]
    far = APART * max([1.0, *(step for row in steps for step in row if step is not None)])
    return [[far if step is None else step for step in row] for row in steps]


def _steps_from(start: int, neighbours: list[list[int]]) -> list[float | None]:
    steps: list[float | None] = [None] * len(neighbours)
    steps[start], queue = 0.0, deque([start])
    while queue:
        here = queue.popleft()
        for other in neighbours[here]:
            if steps[other] is None:
                steps[other] = (steps[here] or 0.0) + 1
                queue.append(other)
    return steps


def _to_unit_square(points: list[Point]) -> list[Point]:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    wide, tall = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
    if tall > wide:  # labels are wide, so the longer side lies down
        return _to_unit_square([(y, x) for x, y in points])
    return [((x - min(xs)) / wide, (y - min(ys)) / tall) for x, y in points]
