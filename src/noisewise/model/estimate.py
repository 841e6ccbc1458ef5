"""A point estimate of the model from noisy marginals, quick and without derivatives: to choose what to measure next.

It minimises L(μ) = Σ ‖rows·μ_r - counts_r‖² / (2·stddev_r²) over the distributions on a junction tree by entropic
mirror descent: the log potentials take a step against ∂L/∂μ, and the tree normalises them. Source: McKenna, Sheldon and
Miklau 2019 ("Graphical-model based estimation"). It has no error bars: the posterior is for those.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Integer

from noisewise.model.junction_tree import Columns
from noisewise.model.masks import FORBIDDEN, Box
from noisewise.model.maxent import MaxEnt
from noisewise.model.sampling import RowSampler

STEPS = 200
_ENOUGH = 1e-7  # relative decrease of the loss below which more steps change nothing of interest


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """Noisy counts of one marginal."""

    columns: Columns
    """The columns, as positions, ascending."""
    counts: np.ndarray
    """The noisy counts, one axis per column."""
    stddev: float
    """Standard deviation of the noise in every cell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PointEstimate:
    """A single distribution that explains noisy counts."""

    model: MaxEnt
    """The model whose tree it lives on."""
    conditionals: tuple[np.ndarray, ...]
    """The table log p(residual | separator) of every clique."""
    loss: float
    """How far the noisy counts are from it."""

    @classmethod
    def of(
        cls, sizes: Sequence[int], seen: Sequence[Seen], rows: int, impossible: Sequence[Box] = ()
    ) -> "PointEstimate":
        """The estimate after at most `STEPS` steps from the uniform distribution."""
        model = MaxEnt.of(sizes, [one.columns for one in seen], impossible)
        homes = [model.tree.home(one.columns) for one in seen]
        shares = [one.counts / rows for one in seen]
        precisions = [(rows / one.stddev) ** 2 for one in seen]
        scale = max(precisions, default=1.0)  # only the step's size depends on it
        weights = [precision / scale for precision in precisions]

        def looked_at(potentials: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray], float]:
            conditionals = model.normalized(potentials)[0]
            tables = model.multiplied(conditionals)
            errors = [
                _summed(tables[home], model.tree.cliques[home], one.columns) - share
                for one, home, share in zip(seen, homes, shares, strict=True)
            ]
            return conditionals, errors, sum(w * float((e**2).sum()) / 2 for w, e in zip(weights, errors, strict=True))

        potentials = [
            np.zeros(model.tree.shape(clique)) if mask is None else np.where(mask, 0.0, FORBIDDEN)
            for clique, mask in zip(model.tree.cliques, model.masks, strict=True)
        ]
        conditionals, errors, loss = looked_at(potentials)
        step = 4.0
        for _ in range(STEPS):
            tried = [table.copy() for table in potentials]
            for one, home, weight, error in zip(seen, homes, weights, errors, strict=True):
                tried[home] -= step * weight * _spread(error, one.columns, model.tree.cliques[home])
            found, wrong, left = looked_at(tried)
            if left > loss:
                step /= 2
                continue
            done = loss - left <= _ENOUGH * loss
            potentials, conditionals, errors, loss, step = tried, found, wrong, left, 1.5 * step
            if done:
                break
        return cls(model=model, conditionals=tuple(conditionals), loss=loss * scale)

    def draw(self, rows: int, seed: int) -> Integer[np.ndarray, "rows columns"]:
        """Independent rows from the estimate."""
        return RowSampler(self.model.tree, self.conditionals).draw(rows, np.random.Generator(np.random.PCG64(seed)))


def _summed(table: np.ndarray, clique: Columns, columns: Columns) -> np.ndarray:
    return np.asarray(table.sum(tuple(i for i, column in enumerate(clique) if column not in columns)))


def _spread(values: np.ndarray, columns: Columns, clique: Columns) -> np.ndarray:
    sizes = iter(values.shape)
    return values.reshape([next(sizes) if column in columns else 1 for column in clique])
