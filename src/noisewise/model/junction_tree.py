"""A junction tree for any set of marginals: the shape of every computation on the model.

Eliminating the columns one by one from the graph of measured marginals gives the tree directly, in a
deterministic order. Several elimination rules are tried and the one with the fewest clique cells is kept;
ties go to the schema's order. Nothing here iterates over a set of names, so the tree, and with it the
meaning of every coordinate, is the same in every process.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

Columns = tuple[int, ...]
Neighbours = dict[int, set[int]]


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    """Cliques of columns in an order where parents come before their children; a forest if disconnected."""

    sizes: tuple[int, ...]
    """Number of levels of every column."""
    cliques: tuple[Columns, ...]
    """The columns of each clique, ascending."""
    parents: tuple[int | None, ...]
    """The parent clique of each clique; None for a root."""
    separators: tuple[Columns, ...]
    """The columns each clique shares with its parent, ascending; empty for a root."""

    @cached_property
    def residuals(self) -> tuple[Columns, ...]:
        """The columns each clique adds to its parent's."""
        pairs = zip(self.cliques, self.separators, strict=True)
        return tuple(tuple(c for c in clique if c not in separator) for clique, separator in pairs)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each clique, ascending."""
        return tuple(
            tuple(i for i, parent in enumerate(self.parents) if parent == clique) for clique in range(len(self.cliques))
        )

    @cached_property
    def cells(self) -> int:
        """Total number of clique cells: what time and memory are proportional to."""
        return sum(self.clique_cells(i) for i in range(len(self.cliques)))

    @property
    def largest_clique(self) -> Columns:
        """The clique with the most cells."""
        return max(self.cliques, key=lambda clique: math.prod(self.sizes[c] for c in clique))

    def clique_cells(self, clique: int) -> int:
        """Number of cells of one clique."""
        return math.prod(self.shape(self.cliques[clique]))

    def shape(self, columns: Columns) -> tuple[int, ...]:
        """Number of levels of each of some columns."""
        return tuple(self.sizes[column] for column in columns)

    def home(self, columns: Columns) -> int:
        """The topmost clique that holds all of some columns."""
        wanted = set(columns)
        return next(i for i, clique in enumerate(self.cliques) if wanted <= set(clique))


def junction_tree(sizes: Sequence[int], marginals: Sequence[Columns]) -> JunctionTree:
    """Build the junction tree in which every marginal fits into a clique.

    Columns that no marginal measures become cliques of their own.
    """
    graph = _graph(len(sizes), marginals)
    rules = (_clique_cells, _added_edges, _degree)
    orders = [_elimination(graph, sizes, rule) for rule in rules]
    return min((_tree(sizes, order) for order in orders), key=lambda tree: tree.cells)


def _graph(columns: int, marginals: Sequence[Columns]) -> Neighbours:
    graph: Neighbours = {column: set() for column in range(columns)}
    for marginal in marginals:
        for a, b in combinations(marginal, 2):
            graph[a].add(b)
            graph[b].add(a)
    return graph


Rule = Callable[[int, Neighbours, Sequence[int]], float]


def _clique_cells(column: int, graph: Neighbours, sizes: Sequence[int]) -> float:
    return math.prod(sizes[c] for c in graph[column]) * sizes[column]


def _added_edges(column: int, graph: Neighbours, sizes: Sequence[int]) -> float:
    return sum(b not in graph[a] for a, b in combinations(sorted(graph[column]), 2))


def _degree(column: int, graph: Neighbours, sizes: Sequence[int]) -> float:
    return len(graph[column])


def _elimination(graph: Neighbours, sizes: Sequence[int], rule: Rule) -> list[tuple[int, set[int]]]:
    """Eliminate the column of least cost until none is left; each with its neighbours at that moment."""
    graph = {column: set(neighbours) for column, neighbours in graph.items()}
    cost = {column: (rule(column, graph, sizes), column) for column in graph}
    order = []
    while graph:
        _, column = min(cost.values())
        neighbours = graph.pop(column)
        del cost[column]
        for other in neighbours:
            graph[other] |= neighbours - {other}
            graph[other].discard(column)
        touched = neighbours.union(*(graph[other] for other in neighbours))
        cost.update({other: (rule(other, graph, sizes), other) for other in touched})
        order.append((column, neighbours))
    return order


def _tree(sizes: Sequence[int], order: list[tuple[int, set[int]]]) -> JunctionTree:
    """Read the tree off an elimination order, last column first, so that parents come first."""
    position = {column: i for i, (column, _) in enumerate(order)}
    cliques: list[set[int]] = []
    parents: list[int | None] = []
    separators: list[Columns] = []
    clique_of: dict[int, int] = {}
    for column, neighbours in reversed(order):
        parent = clique_of[min(neighbours, key=position.__getitem__)] if neighbours else None
        if parent is not None and neighbours == cliques[parent]:
            cliques[parent].add(column)
            clique_of[column] = parent
            continue
        clique_of[column] = len(cliques)
        cliques.append({column, *neighbours})
        parents.append(parent)
        separators.append(tuple(sorted(neighbours)))
    return JunctionTree(
        sizes=tuple(sizes),
        cliques=tuple(tuple(sorted(clique)) for clique in cliques),
        parents=tuple(parents),
        separators=tuple(separators),
    )
