"""Maps made anew around what some points expect, and places carried from the old coordinates to the new."""

import numpy as np

from noisewise.posterior.density import Density
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.values import values_at

SMALL = 1e-3
"""Rows of the table that are added to every cell before its logarithm is taken."""


def around(density: Density, points: np.ndarray) -> Density:
    """The density behind maps around the mean of the counts that some points expect."""
    arrays = density.arrays
    at = values_at(arrays, density.maps(points[: arrays.coordinates])[0])
    cells = (at.expected[arrays.layout.row_of] * np.exp(at.log_p)).mean(1)
    return Density(arrays, monotone_maps(arrays, arrays.centre(np.log(cells + SMALL))))


def carried(points: np.ndarray, old: Density, new: Density) -> np.ndarray:
    """The same places in the new coordinates."""
    split = old.arrays.coordinates
    return np.concatenate([new.maps.inverse(old.maps(points[:split])[0]), points[split:]])
