"""The maximum-entropy distribution on a set of marginals, computed along a junction tree.

Among all distributions with given marginals the one of maximum entropy is log-linear:
log p(x) = Σ θ_A(x_A) - log Z(θ), where A runs over the non-empty subsets of the measured marginals.
Parameters with any column of A at its first level are fixed at zero (the reference cell is the first
level of every column): the usual corner-point coding, which makes θ identifiable, does not depend on the
data, and gives θ = 0 for the uniform distribution. Each θ_A(v) is then a log odds ratio against the reference.
Combinations that the schema's rules exclude have probability exactly 0, and no parameters (`masks`, `parameters`).

This is the plain version: one table per clique, one clique after the other. It runs on NumPy (drawing
synthetic data needs nothing else) and, with `xp=jax.numpy`, under JAX transformations. The derivation of
the recursions is in docs/model.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from noisewise.errors import ModelError
from noisewise.model.junction_tree import Columns, JunctionTree, junction_tree
from noisewise.model.masks import FORBIDDEN, Box, Mask, columns_of, own_masks, possible_cells
from noisewise.model.parameters import Block, blocks_of

Array = Any  # NumPy or JAX: the same code runs on both


@dataclass(frozen=True, kw_only=True)
class MaxEnt:
    """The model for some marginals over columns of given sizes; holds no parameters."""

    tree: JunctionTree
    """The junction tree of the marginals."""
    marginals: tuple[Columns, ...]
    """The measured marginals, as column positions."""
    impossible: tuple[Box, ...] = ()
    """Combinations of levels that have probability 0."""

    @classmethod
    def of(cls, sizes: Sequence[int], marginals: Sequence[Columns], impossible: Sequence[Box] = ()) -> "MaxEnt":
        """Build the model; the same marginal may be listed more than once, in any column order.

        Every combination in `impossible` is tied into one clique, so that it can be forbidden there.
        """
        for marginal in marginals:
            if not marginal or len(set(marginal)) < len(marginal) or not set(marginal) <= set(range(len(sizes))):
                raise ModelError(
                    f"The marginal {list(marginal)} must name some of the columns 0 to {len(sizes) - 1}, each once."
                )
        tree = junction_tree(sizes, [*marginals, *map(columns_of, impossible)])
        return cls(tree=tree, marginals=tuple(tuple(m) for m in marginals), impossible=tuple(impossible))

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """For each clique the cells that are possible given a possible separator value; None if all are."""
        return own_masks(self.tree, self.impossible)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The parameter blocks: interactions of fewer columns first, then in the schema's order."""
        possible = possible_cells(self.tree, self.masks)
        return blocks_of(self.tree, self.marginals, [columns_of(box) for box in self.impossible], possible)

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return self.blocks[-1].stop if self.blocks else 0

    @cached_property
    def cells(self) -> int:
        """Number of cells of all measured marginals."""
        return sum(math.prod(self.tree.shape(marginal)) for marginal in self.marginals)

    def log_conditionals(self, theta: Array, xp: Any = np) -> tuple[list[Array], Array]:
        """The tables log p(residual | separator), one per clique, and log Z(θ)."""
        return self.normalized(self._potentials(theta, xp), xp)

    def normalized(self, potentials: Sequence[Array], xp: Any = np) -> tuple[list[Array], Array]:
        """`log_conditionals` of the distribution proportional to the exponential of one table per clique."""
        totals = list(potentials)
        messages: list[Array] = [None] * len(totals)
        for i in reversed(range(len(totals))):
            clique, separator = self.tree.cliques[i], self.tree.separators[i]
            messages[i] = _log_sum_exp(totals[i], _axes(clique, self.tree.residuals[i]), xp)
            totals[i] = totals[i] - _expand(messages[i], separator, clique)
            parent = self.tree.parents[i]
            if parent is not None:
                totals[parent] = totals[parent] + _expand(messages[i], separator, self.tree.cliques[parent])
        roots = [messages[i] for i, parent in enumerate(self.tree.parents) if parent is None]
        return totals, sum(roots, xp.zeros(()))

    def _potentials(self, theta: Array, xp: Any) -> list[Array]:
        tables = [
            xp.zeros(self.tree.shape(clique)) if mask is None else xp.asarray(np.where(mask, 0.0, FORBIDDEN))
            for clique, mask in zip(self.tree.cliques, self.masks, strict=True)
        ]
        for block in self.blocks:
            values = theta[block.start : block.stop]
            if block.kept is None:
                padded = xp.pad(xp.reshape(values, block.shape), [(1, 0)] * len(block.shape))
            else:
                padded = xp.concatenate([values, xp.zeros(1)])[block.source]
            tables[block.clique] = tables[block.clique] + _expand(
                padded, block.columns, self.tree.cliques[block.clique]
            )
        return tables

    def clique_probabilities(self, theta: Array, xp: Any = np) -> list[Array]:
        """The probability table of every clique."""
        return self.multiplied(self.log_conditionals(theta, xp)[0], xp)

    def multiplied(self, conditionals: Sequence[Array], xp: Any = np) -> list[Array]:
        """The probability table of every clique, from the logarithms of the conditional ones."""
        tables: list[Array] = []
        for i, log_conditional in enumerate(conditionals):
            conditional = xp.exp(log_conditional)
            tables.append(conditional * self._from_parent(i, tables))
        return tables

    def _from_parent(self, i: int, tables: list[Array]) -> Array:
        """The parent's table summed to the separator, with axes for clique i; 1 for a root."""
        parent = self.tree.parents[i]
        if parent is None:
            return 1.0
        return _project(tables[parent], self.tree.cliques[parent], self.tree.separators[i], self.tree.cliques[i])

    def marginal_cells(self, tables: list[Array], xp: Any = np) -> Array:
        """Clique tables summed to the cells of the measured marginals, one after the other, as a vector."""
        parts = []
        for marginal in self.marginals:
            home = self.tree.home(marginal)
            ordered = tuple(sorted(marginal))
            summed = tables[home].sum(_axes(self.tree.cliques[home], _without(self.tree.cliques[home], ordered)))
            parts.append(xp.reshape(xp.transpose(summed, [ordered.index(c) for c in marginal]), (-1,)))
        return xp.concatenate(parts) if parts else xp.zeros((0,))

    def probabilities(self, theta: Array, xp: Any = np) -> Array:
        """μ(θ): the probability of every measured cell."""
        return self.marginal_cells(self.clique_probabilities(theta, xp), xp)

    def deviations(self, theta: Array, normals: list[Array], xp: Any = np) -> list[Array]:
        """Clique counts less their expectation, for one row, as a linear map of standard normals.

        Given its separator's count, a clique's counts are multinomial; the normal with the same mean and
        covariance is δ(s, r) = δ(s) p(r|s) + √p(s) (√p(r|s) z(s, r) - p(r|s) Σ √p(r'|s) z(s, r')).
        Over independent standard normals z the result has exactly the covariance Σ(θ) of one row's cell indicators.
        Roots are taken as half the logarithm: the derivative of √p is infinite where p is too small for a double.
        """
        conditionals, _ = self.log_conditionals(theta, xp)
        log_tables: list[Array] = []
        deviations: list[Array] = []
        for i, log_conditional in enumerate(conditionals):
            p = xp.exp(log_conditional)
            log_above = self._log_above(i, log_tables, xp)
            weighted = xp.exp(0.5 * log_conditional) * normals[i]
            residual = _axes(self.tree.cliques[i], self.tree.residuals[i])
            own = xp.exp(0.5 * log_above) * (weighted - p * weighted.sum(residual, keepdims=True))
            inherited = p * self._from_parent(i, deviations) if self.tree.parents[i] is not None else 0.0
            deviations.append(inherited + own)
            log_tables.append(log_conditional + log_above)
        return deviations

    def _log_above(self, i: int, log_tables: list[Array], xp: Any) -> Array:
        """The logarithm of the separator's probabilities, with axes for clique i; 0 for a root."""
        parent = self.tree.parents[i]
        if parent is None:
            return xp.zeros(())
        clique, separator = self.tree.cliques[parent], self.tree.separators[i]
        summed = _log_sum_exp(log_tables[parent], _axes(clique, _without(clique, separator)), xp)
        return _expand(summed, separator, self.tree.cliques[i])

    def split(self, flat: Array, xp: Any = np) -> list[Array]:
        """Cut a vector over all clique cells into clique tables."""
        tables, start = [], 0
        for i, clique in enumerate(self.tree.cliques):
            stop = start + self.tree.clique_cells(i)
            tables.append(xp.reshape(flat[start:stop], self.tree.shape(clique)))
            start = stop
        return tables

    def covariance_root(self, theta: Array, vectorize: Any, xp: Any = np) -> Array:
        """A matrix R over (measured cells, clique cells) with R Rᵀ = Σ(θ).

        `vectorize` maps a function over the rows of a matrix (`jax.vmap`, or a loop).
        """

        def column(unit: Array) -> Array:
            return self.marginal_cells(self.deviations(theta, self.split(unit, xp), xp), xp)

        return xp.transpose(vectorize(column)(xp.eye(self.tree.cells)))

    def covariance(self, theta: np.ndarray) -> np.ndarray:
        """Σ(θ): the covariance of one row's indicators of the measured cells."""
        root = self.covariance_root(theta, lambda f: lambda rows: np.stack([f(row) for row in rows]))
        return np.asarray(root @ root.T)


def _without(columns: Columns, removed: Columns) -> Columns:
    return tuple(c for c in columns if c not in removed)


def _axes(clique: Columns, columns: Columns) -> tuple[int, ...]:
    return tuple(clique.index(c) for c in columns)


def _expand(table: Array, columns: Columns, clique: Columns) -> Array:
    """Give a table over some columns an axis of length one for every other column of a clique."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if c in columns else 1 for c in clique])


def _project(table: Array, clique: Columns, separator: Columns, target: Columns) -> Array:
    """Sum a clique's table to a separator and give it the axes of a target clique."""
    return _expand(table.sum(_axes(clique, _without(clique, separator))), separator, target)


def _log_sum_exp(table: Array, axes: tuple[int, ...], xp: Any) -> Array:
    top = table.max(axes, keepdims=True)
    return xp.log(xp.exp(table - top).sum(axes)) + top.reshape([n for i, n in enumerate(table.shape) if i not in axes])
