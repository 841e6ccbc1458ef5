"""The model's cliques laid out as flat vectors: what every fast computation on the posterior is made of.

A clique's table is cut into rows, one for each value of its separator; a row holds the cells of the residual columns.
All tables lie one after the other in one vector of cells, all rows in one vector of rows, so that one operation
serves cliques of every shape. What leads from one vector to another is linear with constant coefficients, and kept as
sparse matrices. docs/posterior.md has the derivation; the names here are the names there.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from noisewise.model.junction_tree import Columns
from noisewise.model.maxent import MaxEnt
from noisewise.model.parameters import Block

Matrix = Any  # scipy.sparse.csr_array


@dataclass(frozen=True, kw_only=True)
class Clique:
    """One clique of the tree as it is hung here."""

    separator: Columns
    """The columns shared with the parent; empty for a root."""
    residual: Columns
    """The columns the clique adds."""
    parent: int
    """Position of the parent; -1 for a root."""
    level: int
    """Steps from the root."""
    cells: slice
    """Where its cells are."""
    rows: slice
    """Where its rows are."""
    inner: bool
    """Whether it has children, or measured marginals smaller than itself: its counts are then latent."""
    blocks: tuple[Block, ...]
    """The parameter blocks that belong to it: those with a residual column."""

    @property
    def columns(self) -> Columns:
        """Separator, then residual: the order of the table's axes."""
        return self.separator + self.residual


@dataclass(frozen=True, kw_only=True)
class Level:
    """All cliques equally far from their roots; the inner ones come first."""

    cells: slice
    """Their cells."""
    rows: slice
    """Their rows."""
    inner_cells: slice
    """The cells of the inner ones."""
    inner_rows: slice
    """The rows of the inner ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The flat vectors of a model and the constant matrices between them."""

    model: MaxEnt
    """The model."""
    cliques: tuple[Clique, ...]
    """The cliques, parents before children, level by level."""

    @classmethod
    def of(cls, model: MaxEnt) -> "Layout":
        """Hang the junction tree where it is shallow, every clique as high as its separator allows."""
        hung = _hang(model)
        cliques: list[Clique] = []
        blocks = _blocks_by_home(model, [s + r for s, r, *_ in hung])
        cell = row = 0
        for (separator, residual, parent, level, inner), own in zip(hung, blocks, strict=True):
            rows, width = _size(model, separator), _size(model, residual)
            cliques.append(
                Clique(
                    separator=separator,
                    residual=residual,
                    parent=parent,
                    level=level,
                    inner=inner,
                    cells=slice(cell, cell + rows * width),
                    rows=slice(row, row + rows),
                    blocks=own,
                )
            )
            cell, row = cell + rows * width, row + rows
        return cls(model=model, cliques=tuple(cliques))

    @property
    def cells(self) -> int:
        """Number of cells of all cliques."""
        return self.cliques[-1].cells.stop

    @property
    def rows(self) -> int:
        """Number of rows of all cliques."""
        return self.cliques[-1].rows.stop

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels, from the roots."""
        depth = 1 + self.cliques[-1].level
        by_level = [[c for c in self.cliques if c.level == level] for level in range(depth)]
        return tuple(_level(cliques) for cliques in by_level)

    @cached_property
    def row_of(self) -> np.ndarray:
        """The row of every cell."""
        widths = np.concatenate([np.full(_count(c.rows), _count(c.cells) // _count(c.rows)) for c in self.cliques])
        return np.repeat(np.arange(self.rows), widths)

    @cached_property
    def first(self) -> np.ndarray:
        """The first cell of every row."""
        return np.searchsorted(self.row_of, np.arange(self.rows))

    @cached_property
    def row_sums(self) -> Matrix:
        """Rows by cells: the sum over each row."""
        return _ones(self.row_of, np.arange(self.cells), (self.rows, self.cells))

    @cached_property
    def separator_sums(self) -> Matrix:
        """Rows by cells: from the cells of the parents to the rows of their children; roots have none."""
        parts = [
            (c.rows.start + self.project(c.parent, c.separator), np.arange(self.cells)[self.cliques[c.parent].cells])
            for c in self.cliques
            if c.parent >= 0
        ]
        return _ones(*_joined(parts), (self.rows, self.cells))

    def project(self, clique: int, columns: Columns) -> np.ndarray:
        """For every cell of a clique, the number of the cell of a table over some of its columns."""
        own = self.cliques[clique].columns
        shape = self.model.tree.shape(own)
        codes = np.indices(shape).reshape(len(shape), -1)
        flat = np.zeros(math.prod(shape), np.intp)
        for column in columns:
            flat = flat * self.model.tree.sizes[column] + codes[own.index(column)]
        return flat

    def home(self, columns: Columns) -> int:
        """The topmost clique that holds some columns."""
        wanted = set(columns)
        return next(i for i, clique in enumerate(self.cliques) if wanted <= set(clique.columns))

    @cached_property
    def measured_sums(self) -> Matrix:
        """Measured cells by clique cells: the marginals one after the other."""
        parts, start = [], 0
        for marginal in self.model.marginals:
            home = self.home(marginal)
            cells = self.cliques[home].cells
            parts.append((start + self.project(home, marginal), np.arange(self.cells)[cells]))
            start += _size(self.model, marginal)
        return _ones(*_joined(parts), (start, self.cells))

    # Parameters

    @cached_property
    def feature_cells(self) -> np.ndarray:
        """For every parameter, the cell of its home clique that has its levels, and first levels otherwise."""
        found = np.zeros(self.model.parameters, np.intp)
        for clique in self.cliques:
            for block in clique.blocks:
                levels = np.indices(block.shape).reshape(len(block.shape), -1) + 1
                flat = np.zeros(levels.shape[1], np.intp)
                for column in clique.columns:
                    flat *= self.model.tree.sizes[column]
                    if column in block.columns:
                        flat += levels[block.columns.index(column)]
                found[block.start : block.stop] = clique.cells.start + flat
        return found

    @cached_property
    def saturated(self) -> tuple[bool, ...]:
        """Which cliques have a parameter for every cell but the first of each row."""
        return tuple(sum(b.stop - b.start for b in c.blocks) == _count(c.cells) - _count(c.rows) for c in self.cliques)

    @cached_property
    def subset_sums(self) -> Matrix:
        """Cells by parameters: a clique's own log potential as the sum of the parameters that a cell has."""
        parts = []
        for i, clique in enumerate(self.cliques):
            here = np.arange(self.cells)[clique.cells]
            for block in clique.blocks:
                sizes = self.model.tree.shape(block.columns)
                codes = np.stack(np.unravel_index(self.project(i, block.columns), sizes))
                kept = (codes > 0).all(0)
                own = np.ravel_multi_index(tuple(codes[:, kept] - 1), block.shape)
                parts.append((here[kept], block.start + own))
        return _ones(*_joined(parts), (self.cells, self.model.parameters))

    @cached_property
    def differences(self) -> Matrix:
        """Parameters by parameters: from log potentials at the parameters' cells back to the parameters."""
        d = self.model.parameters
        rows, columns, signs = [], [], []
        for clique in self.cliques:
            for block in clique.blocks:
                for smaller in clique.blocks:
                    if not set(smaller.columns) <= set(block.columns):
                        continue
                    levels = np.indices(block.shape).reshape(len(block.shape), -1)
                    chosen = tuple(levels[block.columns.index(c)] for c in smaller.columns)
                    rows.append(block.start + np.arange(levels.shape[1]))
                    columns.append(smaller.start + np.ravel_multi_index(chosen, smaller.shape))
                    sign = (-1) ** (len(block.columns) - len(smaller.columns))
                    signs.append(np.full(levels.shape[1], float(sign)))
        entries = (np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns)))
        return sparse.csr_array(entries, shape=(d, d))

    @cached_property
    def message_differences(self) -> Matrix:
        """Cells by rows: what the children's messages add to a cell, less what they add to its row's first cell.

        It acts on ℓ = -log p(first cell of a row | row). A child's message is ℓ of its row plus the messages
        its own first cell gets; a constant in a message has no effect, and is taken out so that little is left.
        """
        unit = sparse.eye_array(self.rows, format="csr")
        children: list[list[int]] = [[] for _ in self.cliques]
        for i, clique in enumerate(self.cliques):
            if clique.parent >= 0:
                children[clique.parent].append(i)
        messages: list[Any] = [None] * len(self.cliques)
        tables: list[Any] = [None] * len(self.cliques)
        for i in reversed(range(len(self.cliques))):
            clique = self.cliques[i]
            table = sparse.csr_array((_count(clique.cells), self.rows))
            for child in children[i]:
                table = table + messages[child][self.project(i, self.cliques[child].separator)]
                messages[child] = None
            at_first = table[self.first[clique.rows] - clique.cells.start]
            tables[i] = _without_zeros(table - at_first[self.row_of[clique.cells] - clique.rows.start])
            message = at_first + unit[clique.rows]
            messages[i] = _without_zeros(message - message[np.zeros(message.shape[0], np.intp)])
        return sparse.vstack(tables, format="csr")


def _level(cliques: list[Clique]) -> Level:
    cells = slice(cliques[0].cells.start, cliques[-1].cells.stop)
    rows = slice(cliques[0].rows.start, cliques[-1].rows.stop)
    inner = [c for c in cliques if c.inner]
    return Level(
        cells=cells,
        rows=rows,
        inner_cells=slice(cells.start, inner[-1].cells.stop if inner else cells.start),
        inner_rows=slice(rows.start, inner[-1].rows.stop if inner else rows.start),
    )


Hung = tuple[Columns, Columns, int, int]  # separator, residual, parent, level


def _hang(model: MaxEnt) -> list[tuple[Columns, Columns, int, int, bool]]:
    """(separator, residual, parent, level, inner) of every clique, level by level, inner ones first."""
    tree = model.tree
    near: list[list[int]] = [[] for _ in tree.cliques]
    for i, parent in enumerate(tree.parents):
        if parent is not None:
            near[i].append(parent)
            near[parent].append(i)
    hung: list[Hung] = []
    seen: set[int] = set()
    for i in range(len(tree.cliques)):
        if i not in seen:
            part = _reached(i, near)
            seen.update(part)
            hung += _hang_part(model, _root(part, near), near, len(hung))
    hung = _split(model, hung)
    inner = _inner(model, hung)
    order = sorted(range(len(hung)), key=lambda i: (hung[i][3], not inner[i]))
    place = {old: new for new, old in enumerate(order)}
    return [(s, r, place.get(p, -1), level, inner[i]) for i in order for s, r, p, level in (hung[i],)]


def _split(model: MaxEnt, hung: list[Hung]) -> list[Hung]:
    """Cut cliques with fewer parameters than cells into two, one column below the others, while that helps.

    Without the interaction of all its columns, a clique of race, gender and income is best taken as race
    given income, which has all its parameters and was measured, and gender given both. It is the same model.
    """
    interactions = {block.columns for block in model.blocks}
    found: list[Hung] = []
    place: dict[int, list[int]] = {}
    for number, (separator, residual, parent, _) in enumerate(hung):
        chain = [(separator, residual)]
        while len(chain[0][1]) > 1 and not _complete(interactions, *chain[0]):
            above, rest = chain[0]
            last = min(rest, key=lambda c: _cost(model, above, rest, c))
            upper = tuple(c for c in rest if c != last)
            chain = [(above, upper), (tuple(sorted(above + upper)), (last,)), *chain[1:]]
        place[number] = []
        top = -1 if parent < 0 else next(i for i in place[parent] if set(separator) <= set(sum(found[i][:2], ())))
        for part in chain:
            depth = 0 if top < 0 else found[top][3] + 1
            place[number].append(len(found))
            found.append((*part, top, depth))
            top = len(found) - 1
    return found


def _complete(interactions: set[Columns], separator: Columns, residual: Columns) -> bool:
    """Whether every interaction with a residual column is a parameter block."""
    own = sorted(separator + residual)
    subsets = (a for k in range(1, len(own) + 1) for a in combinations(own, k) if set(a) & set(residual))
    return all(a in interactions for a in subsets)


def _cost(model: MaxEnt, separator: Columns, residual: Columns, last: int) -> tuple[bool, int, int]:
    """How bad it is to put a column below the others: worst if they are then still incomplete."""
    interactions = {block.columns for block in model.blocks}
    upper = tuple(c for c in residual if c != last)
    own = set(separator + residual)
    touched = sum(b.stop - b.start for b in model.blocks if last in b.columns and set(b.columns) <= own)
    return not _complete(interactions, separator, upper), touched, last


def _inner(model: MaxEnt, hung: list[Hung]) -> list[bool]:
    """Which cliques have children or measured marginals smaller than themselves."""
    found = [False] * len(hung)
    for _, _, parent, _ in hung:
        if parent >= 0:
            found[parent] = True
    by_level = sorted(range(len(hung)), key=lambda i: hung[i][3])
    columns = [set(s + r) for s, r, _, _ in hung]
    for marginal in model.marginals:
        home = next(i for i in by_level if set(marginal) <= columns[i])
        found[home] |= len(marginal) < len(columns[home])
    return found


def _root(part: list[int], near: list[list[int]]) -> int:
    """The middle of a longest path."""
    end = _reached(part[0], near)[-1]
    other = _reached(end, near)[-1]
    path = _path(end, other, near)
    return path[len(path) // 2]


def _reached(start: int, near: list[list[int]]) -> list[int]:
    order, seen = [start], {start}
    for i in order:
        for j in near[i]:
            if j not in seen:
                seen.add(j)
                order.append(j)
    return order


def _path(start: int, end: int, near: list[list[int]]) -> list[int]:
    came = {start: start}
    for i in _reached(start, near):
        for j in near[i]:
            came.setdefault(j, i)
    path = [end]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path


def _hang_part(model: MaxEnt, root: int, near: list[list[int]], start: int) -> list[Hung]:
    """One connected part, each clique below the topmost one that holds its separator."""
    tree, place = model.tree, {root: 0}
    hung: list[Hung] = [((), tree.cliques[root], -1, 0)]
    for i in _reached(root, near):
        for j in near[i]:
            if j in place:
                continue
            shared = tuple(c for c in tree.cliques[j] if c in tree.cliques[i])
            parent = place[i]
            while parent > 0 and set(shared) <= set(hung[parent][0]):
                parent = hung[parent][2]
            place[j] = len(hung)
            rest = tuple(c for c in tree.cliques[j] if c not in shared)
            hung.append((shared, rest, parent, hung[parent][3] + 1))
    return [(shared, rest, start + parent if parent >= 0 else -1, level) for shared, rest, parent, level in hung]


def _blocks_by_home(model: MaxEnt, cliques: list[Columns]) -> list[tuple[Block, ...]]:
    own: list[list[Block]] = [[] for _ in cliques]
    holders: dict[int, list[int]] = {}
    for i, columns in enumerate(cliques):
        for column in columns:
            holders.setdefault(column, []).append(i)
    for block in model.blocks:
        wanted = set(block.columns)
        own[next(i for i in holders[block.columns[0]] if wanted <= set(cliques[i]))].append(block)
    return [tuple(blocks) for blocks in own]


def _size(model: MaxEnt, columns: Columns) -> int:
    return math.prod(model.tree.shape(columns))


def _count(part: slice) -> int:
    return part.stop - part.start


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    if not parts:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Matrix:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _without_zeros(matrix: Matrix) -> Matrix:
    matrix = sparse.csr_array(matrix)
    matrix.eliminate_zeros()
    return matrix
