"""Constant sparse matrices under JAX: products as gathers, with the transpose's gathers as their derivative.

XLA's scatter on processors runs element by element, and it is what the derivative of a gather would be. So every matrix
carries its transpose, and neither direction scatters. Rows of similar length share one padded gather: few
operations, at most twice the work. The indices are arguments of compiled functions, not constants in them: problems
of equal shape share the compilation.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import sparse

MAX_DENSE = 40_000
"""Entries up to which a plain matrix product is faster than gathers."""


class Gathers(NamedTuple):
    """The rows of a sparse matrix by length, and where each row of the product is found."""

    columns: tuple[Any, ...]
    """Column positions of rows of similar length, one array (rows, length) each."""
    values: tuple[Any, ...]
    """The entries there; zero where a row is shorter."""
    order: Any
    """Position of each row of the product in the parts, one after the other."""


class SparseMap(NamedTuple):
    """A sparse matrix and its transpose."""

    forward: Any
    """The matrix: `Gathers`, or dense if small."""
    backward: Any
    """The transpose."""


def sparse_map(matrix: Any) -> SparseMap:
    """Prepare a SciPy matrix."""
    matrix = sparse.csr_array(matrix)
    if matrix.shape[0] * matrix.shape[1] <= MAX_DENSE:
        dense = matrix.toarray()
        return SparseMap(dense, dense.T.copy())
    return SparseMap(_gathers(matrix), _gathers(sparse.csr_array(matrix.T)))


def _gathers(matrix: Any) -> Gathers:
    matrix.sort_indices()
    lengths = np.diff(matrix.indptr)
    kinds = np.where(lengths > 0, np.ceil(np.log2(np.maximum(lengths, 1))).astype(int), -1)
    columns, values, rows = [], [], []
    for kind in np.unique(kinds):
        here = np.flatnonzero(kinds == kind)
        rows.append(here)
        width = 1 << max(kind, 0)
        place = matrix.indptr[here][:, None] + np.arange(width)
        filled = np.arange(width) < lengths[here][:, None]
        place = np.where(filled, place, 0)
        columns.append(np.where(filled, matrix.indices[place], 0).astype(np.int32) if matrix.nnz else place * 0)
        values.append(np.where(filled, matrix.data[place], 0.0) if matrix.nnz else place * 0.0)
    order = np.empty(matrix.shape[0], np.int32)
    order[np.concatenate(rows)] = np.arange(matrix.shape[0])
    return Gathers(tuple(columns), tuple(values), order)


def _product(matrix: Any, vector: Array) -> Array:
    if not isinstance(matrix, Gathers):
        return matrix @ vector
    parts = [(vector[c] * v).sum(-1) for c, v in zip(matrix.columns, matrix.values, strict=True)]
    return jnp.concatenate(parts)[matrix.order]


@jax.custom_vjp
def multiply(matrix: SparseMap, vector: Array) -> Array:
    """The product of a matrix and a vector."""
    return _product(matrix.forward, vector)


def _multiply_forward(matrix: SparseMap, vector: Array) -> tuple[Array, SparseMap]:
    return _product(matrix.forward, vector), matrix


def _multiply_backward(matrix: SparseMap, slope: Array) -> tuple[None, Array]:
    return None, multiply(SparseMap(matrix.backward, matrix.forward), slope)


multiply.defvjp(_multiply_forward, _multiply_backward)


def transposed(matrix: SparseMap) -> SparseMap:
    """The transpose."""
    return SparseMap(matrix.backward, matrix.forward)
