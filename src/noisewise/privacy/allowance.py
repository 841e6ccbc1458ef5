"""The last guard before a draw: nothing is drawn that was not planned, and nothing twice."""

from collections import Counter

import numpy as np

from noisewise.errors import BudgetError
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.noise import NoiseSource


class Allowance(NoiseSource):
    """A noise source that gives out what a plan allows, each once: made anew for every measurement."""

    def __init__(self, planned: PrivacyLoss, noise: NoiseSource) -> None:
        self._noise, self._rows = noise, planned.max_rows_per_unit
        self._left = Counter([("noise", stddev) for stddev in planned.stddevs])
        self._left += Counter([("choice", epsilon) for epsilon in planned.rounds])

    def gaussian(self, counts: np.ndarray, stddev: float, squared_distance: int, rho: float) -> np.ndarray:
        """Add noise of a planned size to one marginal."""
        self._take("noise", stddev, squared_distance == 2 * self._rows**2 and rho == (self._rows / stddev) ** 2)
        return self._noise.gaussian(counts, stddev, squared_distance, rho)

    def choose(self, scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
        """Make a planned choice."""
        self._take("choice", epsilon, sensitivity == 2 * self._rows)
        return self._noise.choose(scores, sensitivity, epsilon)

    def refuse_leftovers(self) -> None:
        """What is stated must be what was drawn: a plan that was not used up is a defect."""
        if self._left.total():
            raise BudgetError("Not everything that was planned was drawn. This is a defect: please report it.")

    def _take(self, kind: str, size: float, for_this_unit: bool) -> None:
        if not for_this_unit or not self._left[kind, size]:
            raise BudgetError("Something that was not planned was to be drawn. This is a defect: please report it.")
        self._left[kind, size] -= 1
