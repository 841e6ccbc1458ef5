"""Reference distributions: what a pooled estimate is compared with for intervals and p-values."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

NO_DOF = 0.01
"""Below this many degrees of freedom a t quantile passes 1e128: the interval is the whole line."""


class Reference(ABC):
    """The distribution of one estimand given all synthetic datasets."""

    @abstractmethod
    def interval(self, alpha: float) -> tuple[float, float]:
        """The equal-tailed interval that holds the estimand with probability 1 - alpha."""

    @abstractmethod
    def pvalue(self, null: float) -> float:
        """Twice the smaller tail beyond `null`."""


@dataclass(frozen=True, kw_only=True)
class StudentReference(Reference):
    """A t distribution, or a normal one where `dof` is infinite."""

    center: float
    """The pooled estimate."""
    stddev: float
    """The pooled standard error."""
    dof: float
    """Degrees of freedom."""

    def interval(self, alpha: float) -> tuple[float, float]:
        from scipy.special import ndtri, stdtrit

        if self.dof < NO_DOF:
            return -np.inf, np.inf
        upper = 1 - alpha / 2
        quantile = float(ndtri(upper) if np.isinf(self.dof) else stdtrit(self.dof, upper))
        return self.center - quantile * self.stddev, self.center + quantile * self.stddev

    def pvalue(self, null: float) -> float:
        from scipy.special import ndtr, stdtr

        if self.dof < NO_DOF:
            return 1.0
        statistic = -abs(self.center - null) / self.stddev
        return float(2 * (ndtr(statistic) if np.isinf(self.dof) else stdtr(self.dof, statistic)))


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureReference(Reference):
    """Equally weighted normal distributions, such as one posterior per synthetic dataset."""

    centers: Float[ndarray, " parts"]
    """The mean of each part."""
    stddevs: Float[ndarray, " parts"]
    """The standard deviation of each part."""

    def probability_below(self, value: float) -> float:
        """The distribution function."""
        from scipy.special import ndtr

        return float(np.mean(ndtr((value - self.centers) / self.stddevs)))

    def interval(self, alpha: float) -> tuple[float, float]:
        return self._quantile(alpha / 2), self._quantile(1 - alpha / 2)

    def pvalue(self, null: float) -> float:
        below = self.probability_below(null)
        return min(1.0, 2 * min(below, 1 - below))

    def _quantile(self, probability: float) -> float:
        from scipy.optimize import brentq
        from scipy.special import ndtri

        each = self.centers + ndtri(probability) * self.stddevs
        low, high = float(each.min()), float(each.max())  # a mixture's quantile lies between those of its parts
        if low == high:
            return low
        return float(brentq(lambda value: self.probability_below(value) - probability, low, high, xtol=1e-14))
