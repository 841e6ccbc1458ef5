"""The parameters of the model: interactions block by block, without those that impossible cells make void.

Where every combination of levels can occur, the corner-point parameters of all interactions are identifiable. Where
some cannot, two things happen. A parameter that no possible row has is void. And among the others some say the
same: where the region follows from the city, the regions' parameters are sums of the cities'. A parameter is kept if
its indicator is, over the possible cells, no linear combination of a constant and of those before it, in canonical
order: interactions of fewer columns first, then the schema's order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from noisewise.model.junction_tree import Columns, JunctionTree
from noisewise.model.masks import Mask

MAX_ELIMINATION = 4_000_000
"""Entries of the largest matrix of indicators that is searched for parameters that say the same.

Cliques are searched, and the marginals and rules in those that are too large; what is found holds together. Parameters
that say the same and are not found stay: the model can express the same distributions, and the prior shares the effect
out among them.
"""

SMALL = 1e-8
Name = tuple[Columns, int] | None
"""A parameter: its interaction and its position in it. None stands for the constant."""
Relation = dict[Name, float]
"""Coefficients with which some parameters' indicators add up to nothing over the possible cells."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """The parameters of one interaction: columns A, none of them at its first level."""

    columns: Columns
    """The columns A, ascending."""
    shape: tuple[int, ...]
    """Levels less one of each column."""
    start: int
    """Position of the first parameter in θ."""
    clique: int
    """The topmost clique that holds A."""
    kept: tuple[int, ...] | None = None
    """Positions, in an array of `shape`, of the parameters that there are; None for all of them."""

    @property
    def stop(self) -> int:
        """One past the position of the last parameter."""
        return self.start + (math.prod(self.shape) if self.kept is None else len(self.kept))

    @cached_property
    def source(self) -> np.ndarray:
        """For each cell of A, first levels included, where its parameter is within the block.

        The block's length stands where there is none: append a 0 to the block's parameters and take them by this.
        """
        count = math.prod(self.shape)
        positions = np.full(count, self.stop - self.start)
        kept = np.arange(count) if self.kept is None else np.array(self.kept, np.intp)
        positions[kept] = np.arange(len(kept))
        return np.pad(positions.reshape(self.shape), [(1, 0)] * len(self.shape), constant_values=self.stop - self.start)


def blocks_of(
    tree: JunctionTree, marginals: Sequence[Columns], rules: Sequence[Columns], possible: Sequence[Mask]
) -> tuple[Block, ...]:
    """The parameter blocks of some marginals. `rules` are the columns of each rule, `possible` a mask per clique."""
    interactions = sorted({a for marginal in marginals for a in _subsets(marginal)}, key=lambda a: (len(a), a))
    kept = _kept(tree, interactions, [*marginals, *rules, *tree.cliques], possible)
    blocks, start = [], 0
    for columns in interactions:
        own = kept.get(columns)
        block = Block(
            columns=columns,
            shape=tuple(size - 1 for size in tree.shape(columns)),
            start=start,
            clique=tree.home(columns),
            kept=None if own is None or own.all() else tuple(int(k) for k in np.flatnonzero(own)),
        )
        start = block.stop
        blocks.append(block)
    return tuple(blocks)


def _subsets(columns: Columns) -> list[Columns]:
    return [tuple(sorted(a)) for k in range(1, len(columns) + 1) for a in combinations(columns, k)]


def _kept(
    tree: JunctionTree, interactions: Sequence[Columns], contexts: Sequence[Columns], possible: Sequence[Mask]
) -> dict[Columns, np.ndarray]:
    """Which parameters there are, for the interactions that impossible cells concern."""
    kept: dict[Columns, np.ndarray] = {}
    for columns in interactions:
        table = possible_table(tree, possible, columns)
        if table is not None:
            kept[columns] = table[(slice(1, None),) * table.ndim].copy()
    relations: list[Relation] = []
    searched: list[set[int]] = []
    for context in sorted({tuple(sorted(columns)) for columns in contexts}, key=lambda a: (-len(a), a)):
        table = possible_table(tree, possible, context)
        if table is None or any(set(context) <= wider for wider in searched):
            continue
        inside = [a for a in interactions if set(a) <= set(context)]
        kept |= {a: np.ones([size - 1 for size in tree.shape(a)], bool) for a in inside if a not in kept}
        cells, blocks = np.argwhere(table), {a: kept[a] for a in inside}
        if len(cells) * sum(int(block.sum()) for block in blocks.values()) <= MAX_ELIMINATION:
            relations += _relations(blocks, context, cells)
            searched.append(set(context))
    _drop_superfluous(kept, relations)
    return kept


def possible_table(tree: JunctionTree, possible: Sequence[Mask], columns: Columns) -> Mask:
    """Which cells of a table over some columns are possible; None if all are."""
    home = tree.home(columns)
    mask = possible[home]
    if mask is None:
        return None
    table = np.asarray(mask.any(tuple(k for k, column in enumerate(tree.cliques[home]) if column not in columns)))
    return None if table.all() else table


def _relations(kept: dict[Columns, np.ndarray], context: Columns, cells: np.ndarray) -> list[Relation]:
    """How indicators over the possible cells of a table are combinations of a constant and of others before them."""
    names: list[Name] = [None]
    indicators = [np.ones((len(cells), 1))]
    for columns, block in kept.items():
        levels = np.argwhere(block) + 1
        names += [(columns, int(position)) for position in np.flatnonzero(block)]
        own = cells[:, [context.index(column) for column in columns]]
        indicators.append((own[:, None, :] == levels).all(2).astype(float))
    reduced, pivots = _reduced(np.concatenate(indicators, axis=1))
    found = []
    for j in sorted(set(range(len(names))) - set(pivots)):
        with_others = {names[pivots[i]]: float(reduced[i, j]) for i in np.flatnonzero(np.abs(reduced[:, j]) > SMALL)}
        found.append({names[j]: -1.0, **with_others})
    return found


def _drop_superfluous(kept: dict[Columns, np.ndarray], relations: Sequence[Relation]) -> None:
    """Drop what all relations together say is a combination of parameters before it, the last ones first."""
    concerned = {name for relation in relations for name in relation if name is not None}
    order = sorted(concerned, key=lambda name: (len(name[0]), *name), reverse=True)
    place: dict[Name, int] = {name: i for i, name in enumerate(order)} | {None: len(order)}
    if not relations or len(relations) * len(place) > MAX_ELIMINATION:
        return
    matrix = np.zeros((len(relations), len(place)))
    for row, relation in enumerate(relations):
        for name, coefficient in relation.items():
            matrix[row, place[name]] = coefficient
    for j in _reduced(matrix)[1]:
        columns, position = order[j]
        kept[columns].reshape(-1)[position] = False


def _reduced(matrix: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """The reduced row echelon form of a matrix without its empty rows, and the columns of its leading ones.

    Entries stay of order one, so rounding stays near 1e-16 times the number of steps (some thousands), and what is not
    0 is a ratio of small whole numbers: SMALL lies well between the two.
    """
    rest = matrix.copy()
    pivots: list[int] = []
    for j in range(rest.shape[1]):
        row = len(pivots)
        if row == len(rest):
            break
        best = row + int(np.abs(rest[row:, j]).argmax())
        if abs(rest[best, j]) <= SMALL:
            continue
        rest[[row, best]] = rest[[best, row]]
        rest[row] /= rest[row, j]
        others = np.flatnonzero(np.abs(rest[:, j]) > 0)
        others = others[others != row]
        rest[others] -= np.outer(rest[others, j], rest[row])
        pivots.append(j)
    return rest[: len(pivots)], pivots
