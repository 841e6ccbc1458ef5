"""The only place that draws privacy noise: OpenDP's exact discrete samplers, on integers.

There is no seed here and there never will be: noise that can be drawn again can be subtracted. Whole numbers go in
and come out, and the noise is added inside the mechanism, so no floating-point pattern can tell neighbours apart.
Before anything is drawn the version is checked (0.9.2 to 0.14.1 had a biased sampler) and, once per process, 20 000
draws are put to a goodness-of-fit test.
"""

import math
from abc import ABC, abstractmethod
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from noisewise.confidential.boundary import unseen_warnings
from noisewise.errors import BudgetError
from noisewise.privacy.accounting import MAX_STDDEV, MIN_STDDEV

SELF_TEST_DRAWS = 20_000
SELF_TEST_STDDEV = 2.0
SELF_TEST_ALPHA = 1e-9
LARGEST_COUNT = 2**53

_FIRST_SOUND = (0, 14, 2)
_FIRST_UNTESTED = (0, 17, 0)


class NoiseSource(ABC):
    """Where noise comes from. `OpenDPNoise` is the only one for real data; tests bring their own."""

    @abstractmethod
    def gaussian(self, counts: np.ndarray, stddev: float, squared_distance: int, rho: float) -> np.ndarray:
        """Add discrete Gaussian noise to int64 counts whose neighbours lie at √squared_distance, for at most ρ."""

    @abstractmethod
    def choose(self, scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
        """The index of a high score, by the exponential mechanism for at most ε."""


class OpenDPNoise(NoiseSource):
    """OpenDP's exact samplers, seeded by the operating system's entropy."""

    def gaussian(self, counts: np.ndarray, stddev: float, squared_distance: int, rho: float) -> np.ndarray:
        """Add N_Z(0, stddev²) to every count, after all guards."""
        _guard_counts(counts)
        if not (math.isfinite(stddev) and MIN_STDDEV <= stddev <= MAX_STDDEV):
            raise BudgetError(f"The noise would be {stddev}; it must lie between {MIN_STDDEV:g} and {MAX_STDDEV:g}.")
        require_sound_sampler()
        return _gaussian(counts, stddev, squared_distance, rho)

    def choose(self, scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
        """The index whose score plus Gumbel noise of size 2·sensitivity/ε is largest."""
        _guard_counts(scores)
        if not (0 < epsilon < math.inf and sensitivity > 0 and scores.size):
            raise BudgetError(f"A choice needs scores, a sensitivity and a positive epsilon, got {epsilon}.")
        require_sound_sampler()
        return _choose(scores, sensitivity, epsilon)


def _gaussian(counts: np.ndarray, stddev: float, squared_distance: int, rho: float) -> np.ndarray:
    import opendp.prelude as dp

    failed, drawn, cost = False, None, math.inf
    try:
        with unseen_warnings():
            dp.enable_features("contrib")
            domain = dp.vector_domain(dp.atom_domain(T="i64"))
            mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=stddev)
            cost = mechanism.map(math.sqrt(squared_distance))
            if cost <= rho * (1 + 1e-9):
                drawn = mechanism(counts.reshape(-1).tolist())
    except Exception:  # its message may quote a count
        failed = True
    _refuse_overspending(failed or drawn is None, cost, rho)
    return np.array(drawn, dtype=np.int64).reshape(counts.shape)


def _choose(scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
    import opendp.prelude as dp

    failed, drawn, cost = False, None, math.inf
    try:
        with unseen_warnings():
            dp.enable_features("contrib")
            mechanism = dp.m.make_noisy_max(
                dp.vector_domain(dp.atom_domain(T="i64")),
                dp.linf_distance(T="i64"),
                dp.zero_concentrated_divergence(),
                scale=2 * sensitivity / epsilon,
            )
            cost = mechanism.map(sensitivity)
            if cost <= epsilon**2 / 8 * (1 + 1e-9):
                drawn = int(mechanism(scores.tolist()))
    except Exception:  # its message may quote a score
        failed = True
    _refuse_overspending(failed or drawn is None, cost, epsilon**2 / 8)
    assert drawn is not None
    return drawn


def _refuse_overspending(failed: bool, cost: float, rho: float) -> None:
    if math.isfinite(cost) and cost > rho * (1 + 1e-9):
        raise BudgetError(
            f"The mechanism would cost ρ = {cost:.6g}, but only {rho:.6g} was set aside. Nothing was drawn."
        )
    if failed:
        raise BudgetError("The noise could not be drawn. Nothing was released; reinstall OpenDP and try again.")


def _guard_counts(counts: np.ndarray) -> None:
    if counts.dtype != np.int64:
        raise BudgetError(f"Noise is added to int64 counts, not to {counts.dtype}. This is a defect: please report it.")
    if counts.size and not bool(((counts >= -LARGEST_COUNT) & (counts <= LARGEST_COUNT)).all()):
        raise BudgetError("A count is too large for the noise mechanism. Nothing was drawn.")


@cache
def require_sound_sampler() -> None:
    """Refuse OpenDP versions known to be biased or never tested, then test 20 000 draws. Once per process."""
    require_sound_version(_installed_version())
    zeros = np.zeros(SELF_TEST_DRAWS, dtype=np.int64)
    draws = _gaussian(zeros, SELF_TEST_STDDEV, 1, 1 / (2 * SELF_TEST_STDDEV**2))
    p_value = goodness_of_fit(draws, SELF_TEST_STDDEV)
    if not p_value >= SELF_TEST_ALPHA:
        raise BudgetError(
            f"OpenDP's sampler failed its start-up test (p = {p_value:.1e}): its noise is not what the accounting "
            "assumes. Nothing was drawn. Reinstall OpenDP and report this."
        )


def _installed_version() -> str:
    try:
        return version("opendp")
    except PackageNotFoundError:
        raise BudgetError("OpenDP is not installed. Measuring needs it: install noisewise[holder].") from None


def require_sound_version(installed: str) -> None:
    """Refuse a version of OpenDP outside the tested range."""
    numbers = tuple(int(part) for part in installed.partition("+")[0].split(".")[:3] if part.isdecimal())
    if not _FIRST_SOUND <= numbers < _FIRST_UNTESTED:
        raise BudgetError(
            f"OpenDP {installed} is not one of the versions this was tested with (0.14.2 to 0.16). Versions 0.9.2 to "
            "0.14.1 draw biased noise. Install a tested version."
        )


def goodness_of_fit(draws: np.ndarray, stddev: float) -> float:
    """The p-value of Pearson's χ² test that integers come from N_Z(0, stddev²); cells expect at least ten draws."""
    from scipy.stats import chi2

    reach = math.ceil(40 * stddev)
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-(support.astype(np.float64) ** 2) / (2 * stddev**2))
    expected = draws.size * weights / weights.sum()
    inner = support[expected >= 10]
    low, high = int(inner[0]), int(inner[-1])
    clipped = np.clip(draws, low, high)
    observed = np.bincount(clipped - low, minlength=high - low + 1)
    folded = np.bincount(np.clip(support, low, high) - low, weights=expected)
    statistic = float(np.sum((observed - folded) ** 2 / folded))
    return float(chi2.sf(statistic, high - low))
