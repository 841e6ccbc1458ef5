"""Solving with information matrices that may be singular, many at a time.

A level without rows, or two columns that say the same, make an information matrix singular. The
coefficients that are determined all the same keep their values and variances; the others are named.
"""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

SINGULAR = 1e-12
"""Eigenvalues below this, in a matrix scaled to unit diagonal, count as zero (times the number of terms)."""


def solve(
    information: Float[ndarray, "fits terms terms"], gradient: Float[ndarray, "fits terms"]
) -> Float[ndarray, "fits terms"]:
    """information⁻¹ · gradient, or the solution of least norm where there is no inverse."""
    scaled, unit = _unit_diagonal(information)
    target = (gradient / unit)[..., None]
    solved = np.zeros_like(target)
    well = np.linalg.eigvalsh(scaled)[:, 0] > SINGULAR * scaled.shape[-1]
    solved[well] = np.linalg.solve(scaled[well], target[well])
    if not well.all():
        solved[~well] = _pseudo_inverse(scaled[~well])[0] @ target[~well]
    return np.asarray(solved[..., 0] / unit)


def invert(
    information: Float[ndarray, "fits terms terms"],
) -> tuple[Float[ndarray, "fits terms terms"], Bool[ndarray, "fits terms"]]:
    """The inverse, or pseudo-inverse, and which coefficients are determined."""
    scaled, unit = _unit_diagonal(information)
    inverse, null = _pseudo_inverse(scaled)
    return inverse / unit[:, :, None] / unit[:, None, :], null < 1e-6


def _unit_diagonal(information: Float[ndarray, "fits terms terms"]) -> tuple[ndarray, ndarray]:
    """Scale terms to unit information, so that a column's units do not look like collinearity."""
    diagonal = np.diagonal(information, axis1=1, axis2=2)
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    return information / unit[:, :, None] / unit[:, None, :], unit


def _pseudo_inverse(scaled: Float[ndarray, "fits terms terms"]) -> tuple[ndarray, ndarray]:
    """The pseudo-inverse, and for each coefficient the share of it that lies in the null space."""
    eigenvalues, vectors = np.linalg.eigh(scaled)
    null = eigenvalues < SINGULAR * scaled.shape[-1]
    reciprocal = np.where(null, 0.0, 1 / np.where(null, 1.0, eigenvalues))
    inverse = (vectors * reciprocal[:, None, :]) @ vectors.transpose(0, 2, 1)
    return inverse, (vectors**2 * null[:, None, :]).sum(axis=2)
