"""Sampling until the verdict holds: the loop that is the same for every sampler.

Chains run in short stretches; after each the draws are judged now and then, progress is told, and an interruption keeps
what is there.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from noisewise.posterior import values
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.maps import Maps
from noisewise.posterior.result import Verdict
from noisewise.posterior.verdict import ESS_LIMIT, Convergence, convergence, too_many, verdict_on
from noisewise.progress import Progress

HOPELESS_DRAWS, HOPELESS_RHAT = 600, 1.6
"""Chains as far apart as this after as many draws are stuck: more draws would not help."""


class Part(NamedTuple):
    """What one stretch gives."""

    v: Float[np.ndarray, "chains draws dimensions"]
    """The draws."""
    divergences: int
    """How many diverged."""
    gradients: int
    """Gradients computed."""


def sample(
    arrays: Arrays,
    maps: Maps,
    stretch: Callable[[], Part],
    max_draws: int,
    step: float,
    progress: Progress,
    *,
    stop_if_diverging: bool = False,
) -> tuple[Float[np.ndarray, "chains draws parameters"], Verdict]:
    """Call `stretch` until the draws of each chain reach the verdict or `max_draws`; θ and the verdict."""
    theta: list[np.ndarray] = []
    counts: list[np.ndarray] = []
    divergences = gradients = drawn = checked = 0
    worst, interrupted, began = Convergence(), False, time.monotonic()
    try:
        while drawn < max_draws:
            part = stretch()
            parameters, expected = _figures(arrays, maps, part.v)
            theta.append(parameters)
            counts.append(expected)
            drawn += part.v.shape[1]
            divergences, gradients = divergences + part.divergences, gradients + part.gradients
            if drawn >= max(60, 1.2 * checked):
                checked, worst = drawn, convergence(np.concatenate(counts, 1), worst.suspects)
                stuck = drawn >= HOPELESS_DRAWS and worst.rhat > HOPELESS_RHAT
                late = stop_if_diverging and drawn >= HOPELESS_DRAWS // 2
                diverging = late and too_many(divergences, drawn * len(expected))
                if worst.enough or stuck or diverging:
                    break
            progress(_told(drawn, worst, time.monotonic() - began), int(min(worst.ess, ESS_LIMIT)), ESS_LIMIT)
    except KeyboardInterrupt:
        if drawn < 20:
            raise
        interrupted = True
    whole = np.concatenate(counts, 1)
    verdict = verdict_on(whole, divergences, gradients, step, interrupted)
    return np.concatenate(theta, 1), verdict


def _told(drawn: int, worst: Convergence, seconds: float) -> str:
    left = f", about {seconds * (ESS_LIMIT / worst.ess - 1):.0f} s left" if 0 < worst.ess < ESS_LIMIT else ""
    return f"sampling: {drawn} draws a chain, R-hat {worst.rhat:.3f}, ESS {worst.ess:.0f}{left}"


def _figures(arrays: Arrays, maps: Maps, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """θ and expected counts of some draws."""
    chains, draws, _ = v.shape
    free = maps(v[..., : arrays.coordinates].reshape(chains * draws, -1).T)[0]
    at = values.values_at(arrays, free)
    theta, counts = values.theta_of(arrays, at), values.expected_counts(arrays, at)
    return theta.T.reshape(chains, draws, -1), counts.T.reshape(chains, draws, -1)
