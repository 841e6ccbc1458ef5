"""Growing a tree over columns within a limit on the model's size, without ever running into it.

The cells of a tree's pairs add up, so that the smallest model a choice leads to is known at once: it is the cheapest
tree through what is chosen. A choice after which the limit could no longer be kept is never offered. That is how the
number of choices stays the same whatever the table holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from noisewise.model.junction_tree import junction_tree
from noisewise.schema import Schema
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Columns in groups that are tied together already, and what it would cost in cells to tie the groups together."""

    sizes: dict[str, int]
    """Levels of each column."""
    groups: tuple[frozenset[str], ...]
    """The groups."""
    used: int
    """Cells of the model so far."""
    max_cells: int
    """The limit on them."""

    @classmethod
    def of(cls, schema: Schema, columns: tuple[str, ...], required: tuple[Marginal, ...], max_cells: int) -> "Forest":
        """The groups of some columns that the required marginals tie together; all others are alone."""
        positions = [tuple(schema.index(name) for name in marginal) for marginal in required]
        forest = cls(
            sizes={name: schema.sizes[schema.index(name)] for name in columns},
            groups=tuple(frozenset([name]) for name in schema.names),
            used=junction_tree(schema.sizes, positions).cells,
            max_cells=max_cells,
        )
        for marginal in required:
            forest = forest._tied(marginal)
        groups = (group & set(columns) for group in forest.groups)  # tied by a column outside is tied all the same
        return replace(forest, groups=tuple(group for group in groups if group))

    def joined(self, pair: Marginal) -> "Forest":
        """The forest once this pair is chosen."""
        tied = self._tied(pair)
        cells = self.used + prod(self.sizes[name] for name in pair)
        return replace(tied, used=cells)

    def _tied(self, columns: Marginal) -> "Forest":
        if len([group for group in self.groups if group & set(columns)]) < 2:
            return self
        together: frozenset[str] = frozenset().union(*(group for group in self.groups if group & set(columns)))
        apart = tuple(group for group in self.groups if not group & set(columns))
        return replace(self, groups=(*apart, together))

    @property
    def cheapest(self) -> int:
        """Cells of the smallest model in which everything is tied together."""
        return self.used + sum(cells for _, cells in self._cheapest_tree())

    def admissible(self) -> Iterator[Marginal]:
        """Pairs between groups after which the limit can still be kept, in the schema's order.

        The cheapest tree through a pair is the cheapest of all, with the dearest link on its path left out.
        """
        tree = self._cheapest_tree()
        spare = self.max_cells - self.used - sum(cells for _, cells in tree)
        dearest = self._dearest_links(tree)
        group_of = self._group_of()
        for a, b in combinations(self.sizes, 2):
            if group_of[a] != group_of[b]:
                saved = dearest[group_of[a], group_of[b]]
                if self.sizes[a] * self.sizes[b] - saved <= spare:
                    yield a, b

    def _group_of(self) -> dict[str, int]:
        return {name: number for number, group in enumerate(self.groups) for name in group}

    def _cheapest_tree(self) -> list[tuple[tuple[int, int], int]]:
        """Links between groups of the smallest tree, each with its cells (Kruskal)."""
        smallest = [min(self.sizes[name] for name in group) for group in self.groups]
        links = sorted((smallest[i] * smallest[j], i, j) for i, j in combinations(range(len(smallest)), 2))
        root = list(range(len(smallest)))
        tree = []
        for cells, i, j in links:
            if root[i] != root[j]:
                old, new = root[i], root[j]
                root = [new if r == old else r for r in root]
                tree.append(((i, j), cells))
        return tree

    def _dearest_links(self, tree: list[tuple[tuple[int, int], int]]) -> dict[tuple[int, int], int]:
        """For every two groups the cells of the dearest link between them in a tree."""
        neighbours: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(self.groups))}
        for (i, j), cells in tree:
            neighbours[i].append((j, cells))
            neighbours[j].append((i, cells))
        dearest: dict[tuple[int, int], int] = {}
        for start in neighbours:
            waiting = [(start, 0)]
            while waiting:
                here, most = waiting.pop()
                dearest[start, here] = most
                waiting += [(n, max(most, c)) for n, c in neighbours[here] if (start, n) not in dearest]
        return dearest
