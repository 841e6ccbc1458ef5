"""Coordinates where some combinations of levels cannot occur.

There is then no closed form for which cells may serve as coordinates. They are found by elimination, from the deepest
cliques up: a cell becomes a coordinate if its log odds are no linear combination, in θ, of those before it. The
rest is as everywhere: log odds of all cells from the coordinates, and θ from both. Cells that cannot occur
have log odds so low that their probability is exactly 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from noisewise.errors import FitError
from noisewise.model.masks import FORBIDDEN, possible_cells
from noisewise.posterior.layout import Layout, Matrix

SMALL = 1e-8  # entries are ratios of small whole numbers, rounding stays near 1e-13


@dataclass(frozen=True, kw_only=True, eq=False)
class Restricted:
    """The coordinates of a model with combinations that cannot occur."""

    reference: np.ndarray
    """The cell of every row against which log odds are taken."""
    free: np.ndarray
    """The cell of every coordinate."""
    expand: Matrix
    """Cells by coordinates: log odds of all cells."""
    correction: Matrix
    """Cells by rows: what messages add to them."""
    theta_of_cells: Matrix
    """Parameters by cells."""
    theta_of_rows: Matrix
    """Parameters by rows."""


def offsets(layout: Layout) -> np.ndarray:
    """0 for cells that can occur, and for all cells of a row that cannot be reached; very low for the others."""
    model = layout.model
    possible = possible_cells(model.tree, model.masks)
    found = np.ones(layout.cells, bool)
    for number, clique in enumerate(layout.cliques):
        home = model.tree.home(clique.columns)
        mask = possible[home]
        if mask is None:
            continue
        own = model.tree.cliques[home]
        table = mask.any(tuple(k for k, column in enumerate(own) if column not in clique.columns))
        found[clique.cells] = table.reshape(-1)[layout.project(number, tuple(sorted(clique.columns)))]
    alive = np.logical_or.reduceat(found, layout.first)[layout.row_of]
    return np.where(found | ~alive, 0.0, FORBIDDEN)


def restricted(layout: Layout, start: np.ndarray, offset: np.ndarray) -> Restricted:
    """Choose coordinates; `start` holds log p(cell | row) at a point estimate, very low where impossible."""
    reference = np.array(
        [
            first + int(part.argmax())
            for first, part in zip(layout.first, np.split(start, layout.first[1:]), strict=True)
        ]
    )
    by_theta, by_rows = _totals(layout, reference)
    by_theta = by_theta - by_theta[reference[layout.row_of]]
    by_rows = sparse.csr_array(by_rows - by_rows[reference[layout.row_of]])
    can = np.flatnonzero(offset == 0)
    level = np.concatenate([np.full(c.cells.stop - c.cells.start, c.level) for c in layout.cliques])
    order = can[np.lexsort((-start[can], -level[can]))]
    free = _independent(by_theta, order)
    if len(free) < layout.model.parameters:
        raise FitError(
            f"The rules leave {layout.model.parameters - len(free)} parameters that no possible row tells apart. "
            "Leave out the rule that says what another implies."
        )
    back = np.linalg.inv(by_theta[free])
    messages = by_rows[free].toarray()
    pick = sparse.csr_array((np.ones(len(free)), (np.arange(len(free)), free)), shape=(len(free), layout.cells))
    less = sparse.csr_array(
        (np.ones(len(free)), (np.arange(len(free)), reference[layout.row_of[free]])), shape=(len(free), layout.cells)
    )
    expand = np.where((offset == 0)[:, None], by_theta @ back, 0.0)
    correction = np.where((offset == 0)[:, None], by_rows.toarray() - expand @ messages, 0.0)
    return Restricted(
        reference=reference,
        free=free,
        expand=_clean(expand),
        correction=_clean(correction),
        theta_of_cells=sparse.csr_array(_clean(back) @ (pick - less)),
        theta_of_rows=_clean(-back @ messages),
    )


def _totals(layout: Layout, reference: np.ndarray) -> tuple[np.ndarray, Any]:
    """Log potentials with the children's messages in them, as linear in θ and in ℓ = -log p(reference cell | row)."""
    theta = np.zeros((layout.cells, layout.model.parameters))
    for number, clique in enumerate(layout.cliques):
        for block in clique.blocks:
            place = block.source.reshape(-1)[layout.project(number, block.columns)]
            has = np.flatnonzero(place < block.stop - block.start)
            theta[clique.cells.start + has, block.start + place[has]] += 1
    rows = sparse.csr_array((layout.cells, layout.rows))
    parts: list[Any] = [rows[c.cells] for c in layout.cliques]
    unit = sparse.eye_array(layout.rows, format="csr")
    for number in reversed(range(len(layout.cliques))):
        clique = layout.cliques[number]
        if clique.parent < 0:
            continue
        at = reference[clique.rows] - clique.cells.start
        above = layout.project(clique.parent, clique.separator)
        theta[layout.cliques[clique.parent].cells] += theta[clique.cells][at][above]
        parts[clique.parent] = sparse.csr_array(parts[clique.parent] + (parts[number][at] + unit[clique.rows])[above])
    return theta, sparse.vstack(parts, format="csr")


def _independent(matrix: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The first rows, in some order, that are linearly independent of those before them."""
    left = matrix.copy()
    found: list[int] = []
    for row in order:
        if len(found) == matrix.shape[1]:
            break
        pivot = int(np.abs(left[row]).argmax())
        if abs(left[row, pivot]) > SMALL:
            found.append(int(row))
            below = left[:, pivot] / left[row, pivot]
            below[row] = 0
            touched = np.flatnonzero(np.abs(below) > SMALL)
            left[touched] -= below[touched, None] * left[row]
            left[touched, pivot] = 0
    return np.array(found, np.intp)


def _clean(matrix: np.ndarray) -> Matrix:
    return sparse.csr_array(np.where(np.abs(matrix) > SMALL, matrix, 0.0))
