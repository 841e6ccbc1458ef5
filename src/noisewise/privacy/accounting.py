"""Privacy loss, exactly: what discrete Gaussian noise on marginals costs, and how much noise a budget needs.

Only numpy and scipy are used here, because whoever receives a release re-derives its claims with this file.

One unit of at most k rows may be replaced (substitute-one, the number of rows stays). In every marginal at most k
rows leave their cells and k rows enter others, so the counts of one marginal move by at most √2·k in the Euclidean
norm, and the worst move takes k out of one cell and puts k into another.

With k = 1 and the same noise everywhere, K = 2·marginals cells move by one and the loss is
L = (K − 2S) / (2·stddev²), S the sum of K independent discrete Gaussians; δ(ε) = E[(1 − e^(ε − L))₊] is summed
term by term. In all other cases a proved upper bound is used (`_bridge_delta`). Every figure errs on the side of
privacy: noise is rounded up, ε is rounded up.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_ndtr, ndtri

from noisewise.errors import BudgetError

MIN_STDDEV = 1.0
"""Noise is never smaller than this: a budget that would allow less is not used up, and the statement says so."""
MAX_STDDEV = 1e8
"""Noise beyond this says nothing about any table; a budget that needs it is refused."""
MAX_ROWS_PER_UNIT = 10**9
"""A unit of more rows is taken for a slip of the keyboard."""

_ROUNDING = 1e-6
_SLACK = 1 + 1e-9  # covers the rounding of floating-point sums, which are a thousand times more accurate
_SHORT_CUT_FROM = 3.0
_LARGEST_SUM = 4_000_000
_USELESS = 50.0  # a factor of e^50 leaves nothing of a bound
_BRIDGES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5)


@dataclass(frozen=True, kw_only=True)
class PrivacyLoss:
    """What a set of private acts on one table costs together. Add two of them to compose them.

    >>> round(PrivacyLoss(stddevs=(25.129545,) * 10).epsilon(46043**-2), 6)
    1.0
    """

    stddevs: tuple[float, ...] = ()
    """The noise of each measured marginal."""
    rounds: tuple[float, ...] = ()
    """The pure ε of each draw of the exponential mechanism (selection)."""
    max_rows_per_unit: int = 1
    """How many rows one unit contributes at the most."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_rows_per_unit <= MAX_ROWS_PER_UNIT:
            raise BudgetError(
                f"max_rows_per_unit is {self.max_rows_per_unit}; a unit has at least one row, and at most "
                f"{MAX_ROWS_PER_UNIT:,}. Give 1 or more."
            )
        if not all(MIN_STDDEV <= stddev <= MAX_STDDEV for stddev in self.stddevs):
            raise BudgetError(f"Noise must lie between {MIN_STDDEV:g} and {MAX_STDDEV:g}, got {self.stddevs}.")
        if not all(0 < epsilon < math.inf for epsilon in self.rounds):
            raise BudgetError(f"A selection round must cost a positive, finite epsilon, got {self.rounds}.")

    def __add__(self, other: "PrivacyLoss") -> "PrivacyLoss":
        """Both, one after the other, on the same table."""
        if self.max_rows_per_unit != other.max_rows_per_unit:
            raise BudgetError(
                "Two losses with different max_rows_per_unit protect different units; they do not add up."
            )
        return PrivacyLoss(
            stddevs=self.stddevs + other.stddevs,
            rounds=self.rounds + other.rounds,
            max_rows_per_unit=self.max_rows_per_unit,
        )

    @property
    def rho(self) -> float:
        """Zero-concentrated cost: Σ k²/stddev² for the noise, ε²/8 for each round of selection.

        Sources: Canonne, Kamath and Steinke 2020 (discrete Gaussian), Cesar and Rogers 2021 (exponential mechanism).
        """
        noise = math.fsum((self.max_rows_per_unit / stddev) ** 2 for stddev in self.stddevs)
        return noise + math.fsum(epsilon**2 / 8 for epsilon in self.rounds)

    def delta(self, epsilon: float) -> float:
        """The smallest δ that is proved here for this ε; exact for one row per unit, equal noise, no selection."""
        if not self.stddevs and not self.rounds:
            return 0.0
        if not self.rounds and self._is_exact:
            return min(1.0, _exact_delta(epsilon, self.stddevs[0], 2 * len(self.stddevs)) * _SLACK)
        bounds = [concentrated_delta(epsilon, self.rho), _bridge_delta(epsilon, self)]
        if not self.stddevs and math.fsum(self.rounds) <= epsilon:
            bounds.append(0.0)
        return min(1.0, min(bounds) * _SLACK)

    def epsilon(self, delta: float) -> float:
        """The smallest ε, rounded up at the sixth digit, for which `delta(ε)` is at most δ."""
        if not 0 < delta < 1:
            raise BudgetError(f"delta is {delta}; it must lie between 0 and 1.")
        if self.delta(0.0) <= delta:
            return 0.0
        return smallest(lambda epsilon: self.delta(epsilon) <= delta, start=1.0, floor=0.0)

    @property
    def _is_exact(self) -> bool:
        equal = len(set(self.stddevs)) == 1 and self.max_rows_per_unit == 1
        return equal and self.stddevs[0] * math.sqrt(2 * len(self.stddevs)) * 13 < _LARGEST_SUM


def calibrate(
    epsilon: float,
    delta: float,
    relative: Iterable[float],
    max_rows_per_unit: int = 1,
    rounds: Iterable[float] = (),
) -> tuple[float, ...]:
    """The noise per marginal that spends (ε, δ): the smallest multiple of `relative`, rounded up at the sixth digit.

    `relative` holds one positive number per marginal: how much more noise it gets than a marginal with 1.
    `rounds` are the draws of the exponential mechanism that share the budget. No noise is below `MIN_STDDEV`.
    """
    shape, draws = tuple(relative), tuple(rounds)
    if not shape or not all(0 < value < math.inf for value in shape):
        raise BudgetError(f"Noise is divided over marginals by positive numbers, got {shape}.")

    def noise(scale: float) -> tuple[float, ...]:
        return tuple(max(MIN_STDDEV, round_up(scale * value)) for value in shape)

    def enough(scale: float) -> bool:
        return (
            PrivacyLoss(stddevs=noise(scale), rounds=draws, max_rows_per_unit=max_rows_per_unit).delta(epsilon) <= delta
        )

    if PrivacyLoss(rounds=draws, max_rows_per_unit=max_rows_per_unit).delta(epsilon) > delta:
        raise BudgetError("Selection alone costs more than the whole budget. Give it a smaller share.")
    return noise(smallest(enough, start=max_rows_per_unit / min(shape), floor=MIN_STDDEV / max(shape)))


def round_up(value: float) -> float:
    """The value rounded up at the sixth digit after the point."""
    rounded = round(value, 6)
    return rounded if rounded >= value else round(rounded + _ROUNDING, 6)


def concentrated_delta(epsilon: float, rho: float) -> float:
    """δ of any ρ-zCDP mechanism at ε: min over α of e^((α − 1)(αρ − ε)) · (1 − 1/α)^α / (α − 1).

    Source: Canonne, Kamath and Steinke 2020, proposition 12. Any α gives a valid bound: the search need not be exact.
    """
    if rho == 0:
        return 0.0

    def log_delta(log_order: float) -> float:
        above = math.exp(log_order)  # α − 1
        return above * ((1 + above) * rho - epsilon) - (1 + above) * math.log1p(1 / above) - math.log(above)

    guess = math.log(max(1e-3, (epsilon / rho - 1) / 2))
    best = minimize_scalar(log_delta, bounds=(guess - 5, guess + 5), method="bounded", options={"xatol": 1e-10})
    return math.exp(min(0.0, best.fun))


def gaussian_delta(epsilon: float, distance: float) -> float:
    """δ at ε of continuous Gaussian noise of size 1 when the neighbour lies at this distance.

    δ = Φ(−ε/d + d/2) − e^ε Φ(−ε/d − d/2), in logarithms. Source: Balle and Wang 2018, theorem 8.
    """
    first = float(log_ndtr(distance / 2 - epsilon / distance))
    second = epsilon + float(log_ndtr(-distance / 2 - epsilon / distance))
    return -math.exp(first) * math.expm1(min(0.0, second - first))


@lru_cache(maxsize=4096)
def _exact_delta(epsilon: float, stddev: float, cells: int) -> float:
    """δ when `cells` counts with equal noise move by one each."""
    variance = stddev**2
    if stddev < _SHORT_CUT_FROM:
        sums, probability = _sum_distribution(stddev, cells)
        return _hockey_stick(epsilon, sums, probability, variance, cells)
    total = cells * variance
    top = math.ceil(cells / 2 - epsilon * variance) - 1  # the largest sum whose loss is above ε
    bottom = -math.ceil(math.sqrt(min(top, 0) ** 2 + 160 * total))  # beyond it less than e^-80 of the first term
    sums = np.arange(bottom, min(top, -bottom) + 1, dtype=np.float64)
    probability = np.exp(-(sums**2) / (2 * total)) / math.sqrt(2 * math.pi * total)
    return _hockey_stick(epsilon, sums, probability, variance, cells)


def _hockey_stick(epsilon: float, sums: np.ndarray, probability: np.ndarray, variance: float, cells: int) -> float:
    """Σ P(S) · (1 − e^(ε − L))₊ with L = (cells − 2S) / (2·variance): positive terms only, nothing cancels."""
    excess = (cells - 2 * sums) / (2 * variance) - epsilon
    positive = excess > 0
    return float(np.sum(probability[positive] * -np.expm1(-excess[positive])))


def _sum_distribution(stddev: float, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of `cells` independent discrete Gaussians by direct convolution, for small noise."""
    reach = math.ceil(14 * stddev) + 1  # beyond it e^-98
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(support**2) / (2 * stddev**2))
    single = weights / weights.sum()
    widest = math.ceil(16 * stddev * math.sqrt(cells)) + reach
    result, power, left = np.ones(1), single, cells
    while left:
        if left & 1:
            result = _trim(np.convolve(result, power), widest)
        left >>= 1
        if left:
            power = _trim(np.convolve(power, power), widest)
    half = len(result) // 2
    return np.arange(-half, half + 1, dtype=np.float64), result


def _trim(probability: np.ndarray, reach: int) -> np.ndarray:
    half = len(probability) // 2
    return probability if half <= reach else probability[half - reach : half + reach + 1]


def round_distance(epsilon: float) -> float:
    """How far apart Gaussians of size 1 must lie to be as easy to tell apart as one draw of the exponential mechanism.

    The loss of such a draw stays within a range of length ε, so its power p against a level a obeys
    logit p ≤ logit a + ε. The quantile map from logistic to normal is steepest in the middle, which makes
    2·Φ⁻¹(1/(1 + e^(−ε/2))) the largest distance Φ⁻¹(p) − Φ⁻¹(a). The derivation is in docs/accounting.md.
    """
    return 2 * float(ndtri(expit(epsilon / 2)))


def _bridge_delta(epsilon: float, loss: PrivacyLoss) -> float:
    """An upper bound of δ for unequal noise, several rows per unit, or selection, through continuous noise.

    Add continuous Gaussian noise of variance stddev² − t, then round each value at random by a discrete Gaussian of
    variance t around it. By Poisson summation the result is the discrete Gaussian up to a factor within
    (1 ± b)/(1 ∓ b) per cell, b = 2·Σ_j e^(−2π²t·j²). Rounding is post-processing, so with `cells` cells moving and
    h = cells · log((1 + b)/(1 − b)): δ(ε) ≤ e^h · (continuous δ)(ε − 2h). It holds for every t; several are tried.
    Rounds of selection are dominated by Gaussians too (`round_distance`), and squared distances add up.
    """
    rows, stddevs = loss.max_rows_per_unit, loss.stddevs
    cells = 2 * rows * len(stddevs)
    selection = math.fsum(round_distance(cost) ** 2 for cost in loss.rounds)
    if not stddevs:
        return gaussian_delta(epsilon, math.sqrt(selection))
    best = 1.0
    for t in _BRIDGES:
        if t >= min(stddevs) ** 2:
            break
        q = math.exp(-2 * math.pi**2 * t)
        b = 2 * q / (1 - q)
        h = cells * (math.log1p(b) - math.log1p(-b))
        if h > _USELESS:
            continue
        noise = math.fsum(2 * rows**2 / (stddev**2 - t) for stddev in stddevs)
        best = min(best, math.exp(h) * gaussian_delta(epsilon - 2 * h, math.sqrt(noise + selection)))
    return best


def smallest(enough: Callable[[float], bool], start: float, floor: float) -> float:
    """The smallest multiple of 1e-6 above the floor that is enough, by doubling and halving."""
    if enough(floor):
        return floor
    low, high = floor, max(start, floor + _ROUNDING)
    while not enough(high):
        low, high = high, 2 * high
        if high > MAX_STDDEV:
            raise BudgetError("The budget is too small for any useful noise. Give a larger epsilon or delta.")
    while high - low > _ROUNDING / 8:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    result = round_up(low)
    while not enough(result):  # δ of lattice noise need not fall strictly; step until it holds
        result = round(result + _ROUNDING, 6)
    return result
