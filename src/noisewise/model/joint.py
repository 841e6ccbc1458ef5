"""The model's exact distribution over any few columns, whether or not they share a clique."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from noisewise.errors import ModelError
from noisewise.model.junction_tree import Columns, JunctionTree
from noisewise.model.maxent import MaxEnt

MAX_JOINT_CELLS = 2_000_000
"""Largest table that is computed."""


def joint_probabilities(
    model: MaxEnt, theta: Float[np.ndarray, " parameters"], columns: Sequence[int]
) -> Float[np.ndarray, "..."]:
    """The probabilities over some columns, an axis for each in the order given.

    The distribution is the product of p(residual | separator) over the cliques. Those below all wanted columns sum
    to one and are left out; the rest are multiplied and summed in an order that keeps the tables small.
    """
    if math.prod(model.tree.sizes[c] for c in columns) > MAX_JOINT_CELLS:
        raise ModelError(f"The table over {len(columns)} columns has more than {MAX_JOINT_CELLS:,} cells. Name fewer.")
    conditionals, _ = model.log_conditionals(theta)
    needed = _needed(model.tree, columns)
    used = sorted({c for i in needed for c in model.tree.cliques[i]})
    place = {c: number for number, c in enumerate(used)}
    if len(used) > 50:
        raise ModelError(f"The path between the columns passes {len(used)} columns, too many. Name closer ones.")
    operands: list[object] = []
    for i in needed:
        operands += [np.exp(conditionals[i]), [place[c] for c in model.tree.cliques[i]]]
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


def reference_coding(table: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """A function of levels as a sum of corner-point terms: entry v has the term of the columns not at zero in v."""
    for axis in range(table.ndim):
        first = table.take([0], axis)
        table = np.concatenate([first, table.take(range(1, table.shape[axis]), axis) - first], axis)
    return table


def add_function(
    model: MaxEnt, theta: Float[np.ndarray, " parameters"], columns: Columns, table: Float[np.ndarray, "..."]
) -> Float[np.ndarray, " parameters"]:
    """Parameters of the distribution times exp(table), a function of columns that share a measured marginal."""
    coded, moved = reference_coding(table), theta.copy()
    for block in model.blocks:
        if set(block.columns) <= set(columns):
            index = tuple(slice(1, None) if c in block.columns else 0 for c in columns)
            kept = [c for c in columns if c in block.columns]
            part = np.transpose(coded[index], [kept.index(c) for c in block.columns])
            moved[block.start : block.stop] += part.reshape(-1)
    return moved
