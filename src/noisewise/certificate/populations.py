"""Populations to certify in: those the release holds for likely, and those that break what it did not measure.

A draw of the posterior obeys the model: columns that were not measured together are independent given the rest. In
such a population the intervals of an unsupported term cover without having learnt anything. So a second kind
of population has exactly the same measured marginals and an association where none was measured: the release could
not have told the two apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Integer

from noisewise.errors import ModelError
from noisewise.model.joint import Tables, add_at_home, clique_tables, normalised, probabilities_at_home
from noisewise.model.junction_tree import Columns, JunctionTree, junction_tree
from noisewise.model.maxent import MaxEnt
from noisewise.model.sampling import RowSampler
from noisewise.rehearsal import Population

LOG_ODDS = 1.0
"""The log odds ratio, between the ends of two columns, of the association that is added."""
MAX_STRESSED_CELLS = 2_000_000
"""Largest model that associations are added to."""
_SWEEPS, _CLOSE, _LEAST = 500, 1e-9, 1e-300


@dataclass(frozen=True, kw_only=True, eq=False)
class Known(Population):
    """A population that is known in full."""

    tree: JunctionTree
    """The junction tree it factorises along."""
    log_conditionals: Tables
    """log p(residual | separator) of every clique."""

    @classmethod
    def of(cls, model: MaxEnt, theta: Float[np.ndarray, " parameters"]) -> "Known":
        """The model's distribution at some parameters."""
        return cls(tree=model.tree, log_conditionals=list(model.log_conditionals(theta)[0]))

    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Draw rows."""
        return RowSampler(self.tree, self.log_conditionals).draw(rows, stream)

    @property
    def description(self) -> str:
        """What was assumed."""
        return "a population known in full"


@dataclass(frozen=True, kw_only=True, eq=False)
class Stress:
    """Associations to add to a model that does not measure them."""

    model: MaxEnt
    """The release's model."""
    gaps: tuple[Columns, ...]
    """The columns to associate: pairs, and triples that were measured pair by pair."""

    @cached_property
    def tree(self) -> JunctionTree:
        """A junction tree with the model's cliques and the gaps; one that is too large is refused."""
        made = junction_tree(self.model.tree.sizes, [*self.model.tree.cliques, *self.gaps])
        if made.cells > MAX_STRESSED_CELLS:
            raise ModelError(f"With the unmeasured associations the model has {made.cells:,} cells: too many.")
        return made

    def population(self, theta: Float[np.ndarray, " parameters"]) -> Known:
        """The distribution with the associations and the same measured marginals as the model has at `theta`.

        It starts from the model times exp(association) and fits the marginals again one after the other (iterative
        proportional fitting), which leaves the associations' odds ratios as they are.
        """
        own = Known.of(self.model, theta)
        exact = clique_tables(own.tree, own.log_conditionals)
        wanted = {marginal: probabilities_at_home(own.tree, exact, marginal) for marginal in self.model.marginals}
        potentials: Tables = [np.zeros(self.tree.shape(clique)) for clique in self.tree.cliques]
        for clique, table in zip(own.tree.cliques, own.log_conditionals, strict=True):
            add_at_home(self.tree, potentials, clique, table)
        for gap in self.gaps:
            add_at_home(self.tree, potentials, gap, association([self.tree.sizes[c] for c in gap]))
        for _ in range(_SWEEPS):
            farthest = 0.0
            for marginal, target in wanted.items():
                found = probabilities_at_home(
                    self.tree, clique_tables(self.tree, normalised(self.tree, potentials)), marginal
                )
                farthest = max(farthest, float(np.abs(found - target).max()))
                ratio = np.log(np.maximum(target, _LEAST)) - np.log(np.maximum(found, _LEAST))
                add_at_home(self.tree, potentials, marginal, ratio)
            if farthest < _CLOSE:
                break
        return Known(tree=self.tree, log_conditionals=normalised(self.tree, potentials))


def association(sizes: Sequence[int]) -> Float[np.ndarray, "..."]:
    """A log-linear association that rises evenly from the first level of every column to the last."""
    table = np.full((1,) * len(sizes), LOG_ODDS)
    for axis, size in enumerate(sizes):
        shape = [size if i == axis else 1 for i in range(len(sizes))]
        table = table * np.linspace(0.0, 1.0, size).reshape(shape)
    return table
