"""Combinations that cannot occur, as masks over the cliques' tables.

A box forbids a product of level sets over some columns. It is imposed in one clique, the topmost that holds its
columns; the tables of all others follow, because each is conditional on its separator. A separator value for which a
clique has no possible cell left is forbidden in its parent instead, so that every conditional distribution that can be
asked for has a possible cell, and a root without any means that the rules leave no row at all.

For whoever computes with the masks: add `FORBIDDEN` to the log potential of a forbidden cell. It is finite, so that
differences, log-sum-exps and all derivatives are, and its exponential is exactly 0. With -inf in its place the
derivatives would be NaN. A cell that is possible by its clique's mask, but whose separator value is not, has a finite
conditional probability that is multiplied by an exact 0 on the way down.
"""

from collections.abc import Sequence

import numpy as np

from noisewise.errors import ModelError
from noisewise.model.junction_tree import Columns, JunctionTree

FORBIDDEN = -1e30
"""Log potential of a cell that cannot occur; beside it every parameter is lost in rounding."""

Box = tuple[tuple[int, tuple[int, ...]], ...]
"""Columns, ascending, each with some of its level codes: no row has one of them in every column."""
Mask = np.ndarray | None
"""Which cells of a clique are possible; None if all are."""


def columns_of(box: Box) -> Columns:
    """The columns a box speaks of."""
    return tuple(column for column, _ in box)


def own_masks(tree: JunctionTree, impossible: Sequence[Box]) -> tuple[Mask, ...]:
    """What each clique has to forbid by itself, given that its separator value is possible."""
    masks: list[Mask] = [None] * len(tree.cliques)
    for box in impossible:
        home = tree.home(columns_of(box))
        masks[home] = _without_box(_or_full(masks[home], tree, home), tree.cliques[home], box)
    for i in reversed(range(len(masks))):
        mask, parent = masks[i], tree.parents[i]
        if mask is None:
            continue
        residual = tuple(tree.cliques[i].index(column) for column in tree.residuals[i])
        alive = np.asarray(mask.any(residual, keepdims=True))
        if alive.all():
            continue
        if parent is None:
            raise ModelError("The rules leave no possible row. Correct the schema's rules.")
        masks[i] = mask | ~alive
        within = _spread(alive, tree.cliques[i], tree.separators[i], tree.cliques[parent])
        masks[parent] = _or_full(masks[parent], tree, parent) & within
    return tuple(masks)


def possible_cells(tree: JunctionTree, masks: Sequence[Mask]) -> tuple[Mask, ...]:
    """Which cells of each clique some possible row lies in: the masks with those of all parents above them."""
    found: list[Mask] = []
    for i, own in enumerate(masks):
        mask, parent = own, tree.parents[i]
        above = None if parent is None else found[parent]
        if parent is not None and above is not None:
            others = tuple(k for k, column in enumerate(tree.cliques[parent]) if column not in tree.separators[i])
            reached = np.asarray(above.any(others, keepdims=True))
            if not reached.all():
                within = _spread(reached, tree.cliques[parent], tree.separators[i], tree.cliques[i])
                mask = _or_full(mask, tree, i) & within
        found.append(mask)
    return tuple(found)


def _or_full(mask: Mask, tree: JunctionTree, clique: int) -> np.ndarray:
    return np.ones(tree.shape(tree.cliques[clique]), bool) if mask is None else mask


def _without_box(mask: np.ndarray, clique: Columns, box: Box) -> np.ndarray:
    levels = dict(box)
    index = np.ix_(*(levels.get(column, range(size)) for column, size in zip(clique, mask.shape, strict=True)))
    mask = mask.copy()
    mask[index] = False
    return mask


def _spread(table: np.ndarray, clique: Columns, separator: Columns, target: Columns) -> np.ndarray:
    """A clique's table that varies along the separator alone, with the axes of another clique."""
    sizes = {column: table.shape[clique.index(column)] for column in separator}
    return table.reshape([sizes.get(column, 1) for column in target])
