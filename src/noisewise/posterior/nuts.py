"""Sampling the posterior with the no-U-turn sampler until the verdict holds.

The target is exact: what is prepared here (maps, metric, step size) decides only how fast the chains mix.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from noisewise.errors import FitError
from noisewise.posterior.chains import adapted
from noisewise.posterior.problem import Problem
from noisewise.posterior.result import Verdict
from noisewise.posterior.sampling import Part, sample
from noisewise.posterior.settle import Settled, settle
from noisewise.progress import Progress

STRETCH = 25
"""Draws of each chain between two looks; compiled once."""
PACING = 3
"""Stretches in which the step size settles; they are thrown away."""


@dataclass(frozen=True, kw_only=True)
class Nuts:
    """Draw from the posterior by the no-U-turn sampler, until the verdict holds.

    The verdict: rank-normalised split R-hat at most 1.01, bulk and tail effective sample size at least 400 on the
    expected count of every measured cell. Right for any noise. Compiling takes some seconds, the first time a shape
    of problem is met on a machine.
    """

    chains: int = 4
    """Number of chains."""
    max_draws: int = 10_000
    """Most draws of each chain; a posterior whose verdict does not hold by then says so."""
    target_acceptance: float = 0.8
    """Acceptance rate that the step size is set to."""

    def __post_init__(self) -> None:
        if self.chains < 2 or self.max_draws < 4 * STRETCH or not 0.5 <= self.target_acceptance < 1:
            raise FitError(
                f"{self}: chains must be 2 or more, max_draws {4 * STRETCH} or more, target_acceptance from 0.5 to 1."
            )


def nuts_draws(
    problem: Problem, method: Nuts, seed: int, progress: Progress
) -> tuple[Float[np.ndarray, "chains draws parameters"], Verdict]:
    """Prepare, sample until the verdict holds, and judge."""
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):  # a trajectory that leaves for nowhere is rejected
        settled = settle(problem, method.chains, method.target_acceptance, random, progress)
    progress("compiling", 0, 0)
    compiled = _Compiled(settled, seed)
    for number in range(PACING):
        progress("settling the step size", number, PACING)
        accepted = float(compiled.go_on().acceptance.mean())
        compiled.step = adapted(compiled.step, accepted, method.target_acceptance)

    def stretch() -> Part:
        run = compiled.go_on()
        points = np.asarray(run.points)
        v = points * compiled.root if compiled.root.ndim == 1 else points @ compiled.root.T
        return Part(v, int(run.divergent.sum()), int(run.steps.sum()))

    return sample(settled.arrays, settled.density.maps, stretch, method.max_draws, compiled.step, progress)


class _Compiled:
    """The chains on the compiled side; lives for one fit."""

    def __init__(self, settled: Settled, seed: int) -> None:
        import jax

        from noisewise.posterior.compiled import keep_compiled
        from noisewise.posterior.sampler import At, Space
        from noisewise.posterior.target import target_data

        keep_compiled()
        data, self.shape = target_data(settled.arrays)
        state = settled.chains
        self.root, self.step = state.root, state.step
        self.space = Space(data, settled.density.maps.coefficients, self.root)
        if self.root.ndim == 1:
            points, gradients = state.v.T / self.root, state.gradient.T * self.root
        else:
            points, gradients = np.linalg.solve(self.root, state.v).T, state.gradient.T @ self.root
        self.at = At(points, state.value, gradients)
        self.key = jax.random.key(seed)

    def go_on(self) -> Any:
        """One stretch of all chains."""
        import jax

        from noisewise.posterior.sampler import run_chains

        self.key, key = jax.random.split(self.key)
        keys = jax.random.split(key, len(self.at.points))
        run = run_chains(keys, self.at, self.step, self.space, self.shape, STRETCH)
        self.at = run.end
        return run
