"""Growing a tree over columns within a limit on the model's size, without ever running into it.

The cells of a tree's pairs add up, so that the smallest model a choice leads to is known at once: it is the cheapest
tree through what is chosen. A choice after which the limit could no longer be kept is never offered. That is how the
number of choices stays the same whatever the table holds.

A rule of the schema ties its columns together in the model as a marginal does, without measuring anything. A pair that
lies within a rule therefore adds no cells; any other pair between columns that rules tie would close a ring.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from noisewise.model.junction_tree import junction_tree
from noisewise.model.masks import columns_of
from noisewise.schema import Schema
from noisewise.workload import Marginal

Groups = tuple[frozenset[str], ...]


@dataclass(frozen=True, kw_only=True)
class Forest:
    """Columns in groups that measured marginals tie together, and what it costs in cells to tie the groups together."""

    sizes: dict[str, int]
    """Levels of each column."""
    groups: Groups
    """Columns tied together by marginals."""
    clusters: Groups
    """Columns tied together by marginals or rules."""
    rules: Groups
    """The columns of each rule."""
    used: int
    """Cells of the model so far, without columns that are still on their own and will not stay so."""
    max_cells: int
    """The limit on them."""

    @classmethod
    def of(cls, schema: Schema, columns: tuple[str, ...], required: tuple[Marginal, ...], max_cells: int) -> "Forest":
        """What the required marginals and the schema's rules tie together of some columns; all others are alone."""
        ruled = [tuple(columns_of(box)) for box in schema.impossible]
        names = [tuple(schema.names[column] for column in positions) for positions in ruled]
        alone = tuple(frozenset([name]) for name in schema.names)
        measured = [tuple(schema.index(name) for name in marginal) for marginal in required]
        alone_now = {*columns} - {name for marginal in (*required, *names) for name in marginal}  # on their own so far
        cells = junction_tree(schema.sizes, [*measured, *ruled]).cells
        return cls(
            sizes={name: schema.sizes[schema.index(name)] for name in columns},
            groups=_among(columns, _tied(alone, required)),
            clusters=_among(columns, _tied(alone, [*required, *names])),
            rules=_among(columns, (frozenset(rule) for rule in names)),
            used=cells - sum(schema.sizes[schema.index(name)] for name in alone_now),
            max_cells=max_cells,
        )

    def joined(self, pair: Marginal) -> "Forest":
        """The forest once this pair is chosen."""
        clusters = _tied(self.clusters, [pair])
        added = prod(self.sizes[name] for name in pair) if len(clusters) < len(self.clusters) else 0
        return replace(self, groups=_tied(self.groups, [pair]), clusters=clusters, used=self.used + added)

    @property
    def choices(self) -> int:
        """How many pairs will be chosen until no more can be, whichever they are."""
        within = _tied(self.groups, [tuple(sorted(rule)) for rule in self.rules])
        return len(self.groups) - len(within) + len(self.clusters) - 1

    @property
    def cheapest(self) -> int:
        """Cells of the smallest model in which everything is tied together."""
        return self.used + sum(cells for _, cells in self._cheapest_tree())

    def admissible(self) -> Iterator[Marginal]:
        """Pairs that may be chosen next, in the schema's order.

        The cheapest tree through a pair is the cheapest of all, with the dearest link on its path left out.
        """
        tree = self._cheapest_tree()
        spare = self.max_cells - self.used - sum(cells for _, cells in tree)
        dearest = self._dearest_links(tree)
        group, cluster = _number_of(self.groups), _number_of(self.clusters)
        for a, b in combinations(self.sizes, 2):
            if cluster[a] != cluster[b]:
                if self.sizes[a] * self.sizes[b] - dearest[cluster[a], cluster[b]] <= spare:
                    yield a, b
            elif group[a] != group[b] and any({a, b} <= rule for rule in self.rules):
                yield a, b

    def _cheapest_tree(self) -> list[tuple[tuple[int, int], int]]:
        """Links between clusters of the smallest tree, each with its cells (Kruskal)."""
        smallest = [min(self.sizes[name] for name in group) for group in self.clusters]
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
        """For every two clusters the cells of the dearest link between them in a tree."""
        neighbours: dict[int, list[tuple[int, int]]] = {number: [] for number in range(len(self.clusters))}
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


def _tied(groups: Groups, marginals: Iterable[Marginal]) -> Groups:
    """The groups once each of some marginals ties its columns together."""
    for marginal in marginals:
        touched = [group for group in groups if group & set(marginal)]
        if len(touched) > 1:
            groups = (*(group for group in groups if group not in touched), frozenset().union(*touched))
    return groups


def _among(columns: tuple[str, ...], groups: Iterable[frozenset[str]]) -> Groups:
    """What of the groups lies among some columns; what a column outside ties together is tied all the same."""
    return tuple(group & set(columns) for group in groups if group & set(columns))


def _number_of(groups: Groups) -> dict[str, int]:
    return {name: number for number, group in enumerate(groups) for name in group}
