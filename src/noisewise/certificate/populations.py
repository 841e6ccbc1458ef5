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
from noisewise.model.joint import add_function
from noisewise.model.junction_tree import Columns
from noisewise.model.maxent import MaxEnt
from noisewise.model.sampling import draw_rows
from noisewise.rehearsal import Population

LOG_ODDS = 1.0
"""The log odds ratio, between the ends of two columns, of the association that is added."""
MAX_STRESSED_CELLS = 2_000_000
"""Largest model that associations are added to."""
_SWEEPS, _CLOSE = 500, 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class FromModel(Population):
    """The maximum-entropy distribution at some parameters."""

    model: MaxEnt
    """The model."""
    theta: Float[np.ndarray, " parameters"]
    """Its parameters."""

    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Draw rows of the model."""
        return draw_rows(self.model, self.theta, rows, stream)

    @property
    def description(self) -> str:
        """What was assumed."""
        return "a draw of the release's posterior"


@dataclass(frozen=True, kw_only=True, eq=False)
class Stress:
    """Associations to add to a model that does not measure them."""

    model: MaxEnt
    """The release's model."""
    gaps: tuple[Columns, ...]
    """The columns to associate: pairs, and triples that were measured pair by pair."""

    @cached_property
    def extended(self) -> MaxEnt:
        """The model with the gaps among its marginals; one that is too large is refused."""
        made = MaxEnt.of(self.model.tree.sizes, [*self.model.marginals, *self.gaps])
        if made.tree.cells > MAX_STRESSED_CELLS:
            raise ModelError(f"With the unmeasured associations the model has {made.tree.cells:,} cells: too many.")
        return made

    def population(self, theta: Float[np.ndarray, " parameters"]) -> FromModel:
        """The distribution with the associations and the same measured marginals as the model has at `theta`.

        It starts from the model times exp(association) and fits the marginals again one after the other (iterative
        proportional fitting), which leaves the associations' log odds ratios as they are.
        """
        model = self.extended
        moved = embedded(self.model, model, theta)
        for gap in self.gaps:
            moved = add_function(model, moved, gap, association([self.model.tree.sizes[c] for c in gap]))
        wanted = np.split(self.model.probabilities(theta), self._ends)
        for _ in range(_SWEEPS):
            farthest = 0.0
            for number, marginal in enumerate(self.model.marginals):
                found = np.split(model.probabilities(moved), self._ends)[number]
                farthest = max(farthest, float(np.abs(found - wanted[number]).max()))
                ratio = np.log(np.maximum(wanted[number], 1e-300)) - np.log(np.maximum(found, 1e-300))
                moved = add_function(model, moved, marginal, ratio.reshape(model.tree.shape(marginal)))
            if farthest < _CLOSE:
                break
        return FromModel(model=model, theta=moved)

    @cached_property
    def _ends(self) -> list[int]:
        """Where each measured marginal's cells end among the probabilities."""
        sizes = [int(np.prod(self.model.tree.shape(marginal))) for marginal in self.model.marginals]
        return [int(end) for end in np.cumsum(sizes)]


def association(sizes: Sequence[int]) -> Float[np.ndarray, "..."]:
    """A log-linear association that rises evenly from the first level of every column to the last."""
    table = np.full((1,) * len(sizes), LOG_ODDS)
    for axis, size in enumerate(sizes):
        shape = [size if i == axis else 1 for i in range(len(sizes))]
        table = table * np.linspace(0.0, 1.0, size).reshape(shape)
    return table


def embedded(small: MaxEnt, large: MaxEnt, theta: Float[np.ndarray, " parameters"]) -> Float[np.ndarray, " parameters"]:
    """The same distribution's parameters in a model with more marginals: the new ones are zero."""
    where = {block.columns: block for block in large.blocks}
    moved = np.zeros(large.parameters)
    for block in small.blocks:
        there = where[block.columns]
        moved[there.start : there.stop] = theta[block.start : block.stop]
    return moved
