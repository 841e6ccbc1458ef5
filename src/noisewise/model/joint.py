"""Distributions on a junction tree that need not be of any model: made from tables, looked at over any few columns.

A distribution is kept as the tables log p(residual | separator), one per clique: what rows are drawn from.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from noisewise.errors import ModelError
from noisewise.model.junction_tree import Columns, JunctionTree

Tables = list[Float[np.ndarray, "..."]]

MAX_JOINT_CELLS = 2_000_000
"""Largest table that is computed."""
MAX_PATH = 50
"""Most columns that a computation may pass."""


def joint_probabilities(
    tree: JunctionTree, log_conditionals: Sequence[np.ndarray], columns: Sequence[int]
) -> Float[np.ndarray, "..."]:
    """The probabilities over some columns, an axis for each in the order given, whether or not they share a clique.

    The distribution is the product of p(residual | separator) over the cliques. Those below all wanted columns sum
    to one and are left out; the rest are multiplied and summed in an order that keeps the tables small.
    """
    if math.prod(tree.sizes[c] for c in columns) > MAX_JOINT_CELLS:
        raise ModelError(f"The table over {len(columns)} columns has more than {MAX_JOINT_CELLS:,} cells. Name fewer.")
    needed = _needed(tree, columns)
    used = sorted({c for i in needed for c in tree.cliques[i]})
    if len(used) > MAX_PATH:
        raise ModelError(f"The path between the columns passes {len(used)} columns, too many. Name closer ones.")
    place = {c: number for number, c in enumerate(used)}
    operands: list[object] = []
    for i in needed:
        operands += [np.exp(log_conditionals[i]), [place[c] for c in tree.cliques[i]]]
    return np.asarray(np.einsum(*operands, [place[c] for c in columns], optimize="greedy"))  # type: ignore[call-overload]


def _needed(tree: JunctionTree, columns: Sequence[int]) -> list[int]:
    """The cliques that add a wanted column, and all above them."""
    needed = {i for i, residual in enumerate(tree.residuals) if set(residual) & set(columns)}
    for i in sorted(needed, reverse=True):
        parent = tree.parents[i]
        while parent is not None:
            needed.add(parent)
            parent = tree.parents[parent]
    return sorted(needed)


def normalised(tree: JunctionTree, potentials: Sequence[np.ndarray]) -> Tables:
    """The tables log p(residual | separator) of the distribution proportional to the product of exp(potentials)."""
    totals = [table.copy() for table in potentials]
    for i in reversed(range(len(totals))):
        axes = tuple(tree.cliques[i].index(c) for c in tree.residuals[i])
        top = totals[i].max(axes, keepdims=True)
        message = np.log(np.exp(totals[i] - top).sum(axes, keepdims=True)) + top
        totals[i] = totals[i] - message
        parent = tree.parents[i]
        if parent is not None:
            totals[parent] = totals[parent] + _laid(message.squeeze(axes), tree.separators[i], tree.cliques[parent])
    return totals


def clique_tables(tree: JunctionTree, log_conditionals: Sequence[np.ndarray]) -> Tables:
    """The probabilities of every clique."""
    tables: Tables = []
    for i, log_conditional in enumerate(log_conditionals):
        parent, separator = tree.parents[i], tree.separators[i]
        above: np.ndarray | float = 1.0
        if parent is not None:
            away = tuple(n for n, c in enumerate(tree.cliques[parent]) if c not in separator)
            above = _laid(tables[parent].sum(away), separator, tree.cliques[i])
        tables.append(np.exp(log_conditional) * above)
    return tables


def add_at_home(tree: JunctionTree, potentials: Tables, columns: Columns, table: Float[np.ndarray, "..."]) -> None:
    """Add a function of some columns, which must share a clique, to the potentials."""
    home = tree.home(columns)
    ordered = tuple(sorted(columns))
    turned = np.transpose(table, [columns.index(c) for c in ordered])
    potentials[home] = potentials[home] + _laid(turned, ordered, tree.cliques[home])


def probabilities_at_home(tree: JunctionTree, tables: Tables, columns: Columns) -> Float[np.ndarray, "..."]:
    """The probabilities over columns that share a clique, from the tables of all cliques."""
    home = tree.home(columns)
    clique = tree.cliques[home]
    summed = tables[home].sum(tuple(n for n, c in enumerate(clique) if c not in columns))
    kept = [c for c in clique if c in columns]
    return np.asarray(np.transpose(summed, [kept.index(c) for c in columns]))


def _laid(table: np.ndarray, columns: Columns, clique: Columns) -> np.ndarray:
    """A table over some of a clique's columns, ascending, with an axis of length one for every other."""
    sizes = iter(table.shape)
    return table.reshape([next(sizes) if c in columns else 1 for c in clique])
