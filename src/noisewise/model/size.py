"""How large a model would be, and which marginal makes it so: known from public facts, before anything is spent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisewise.model.junction_tree import Columns, JunctionTree, junction_tree
from noisewise.model.masks import Box, columns_of
from noisewise.model.maxent import MaxEnt

MAX_CLIQUE_CELLS = 20_000_000
"""Largest sum of clique cells: a table of them takes 160 MB, and a fit keeps some tens of them."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """The size of the maximum-entropy model of some marginals."""

    tree: JunctionTree
    """The junction tree: its cliques are what the model keeps tables of."""
    parameters: int
    """Number of free parameters."""

    @classmethod
    def of(cls, sizes: Sequence[int], marginals: Sequence[Columns], impossible: Sequence[Box] = ()) -> "ModelSize":
        """The size of the model of `marginals`, which are column positions, over columns of these sizes.

        Of a model that would not fit in memory the parameters are counted as if every combination were possible.
        """
        model = MaxEnt.of(sizes, marginals, impossible)
        counted = model if model.tree.cells <= MAX_CLIQUE_CELLS else MaxEnt.of(sizes, marginals)
        return cls(tree=model.tree, parameters=counted.parameters)

    @property
    def cells(self) -> int:
        """Cells of all cliques: what time and memory are proportional to."""
        return self.tree.cells

    @property
    def width(self) -> int:
        """Most columns in one clique, less one: the width of the tree."""
        return max(len(clique) for clique in self.tree.cliques) - 1

    @property
    def fits(self) -> bool:
        """Whether a machine of ordinary size can hold the model."""
        return self.cells <= MAX_CLIQUE_CELLS


def best_to_leave_out(
    sizes: Sequence[int], marginals: Sequence[Columns], impossible: Sequence[Box] = ()
) -> tuple[Columns, int] | None:
    """The marginal of several columns without which the model is smallest, and the clique cells that are left.

    None if no marginal has two columns of the largest clique: then rules alone tie them together.
    """
    ruled = [columns_of(box) for box in impossible]
    largest = set(junction_tree(sizes, [*marginals, *ruled]).largest_clique)
    suspects = [m for m in dict.fromkeys(marginals) if len(m) > 1 and len(set(m) & largest) > 1]
    left = [
        (junction_tree(sizes, [*(m for m in marginals if m != suspect), *ruled]).cells, suspect) for suspect in suspects
    ]
    if not left:
        return None
    cells, culprit = min(left)
    return culprit, cells


def table_cells(sizes: Sequence[int], columns: Columns) -> int:
    """Cells of a table over some columns."""
    return math.prod(sizes[column] for column in columns)
