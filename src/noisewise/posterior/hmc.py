"""The quick method: Hamiltonian Monte Carlo in NumPy. Nothing is compiled, and the draws are the posterior's own."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from noisewise.errors import FitError
from noisewise.posterior.chains import go_on
from noisewise.posterior.problem import Problem
from noisewise.posterior.result import Verdict
from noisewise.posterior.sampling import Part, sample
from noisewise.posterior.settle import settle
from noisewise.posterior.verdict import too_many
from noisewise.progress import Progress

STRETCH = 20
"""Draws of each chain between two looks."""
ATTEMPTS = 3
"""How often to begin with shorter steps if trajectories diverge."""


@dataclass(frozen=True, kw_only=True)
class Hmc:
    """Draw from the posterior with trajectories of random length, all chains in step, until the verdict holds.

    Exact like `Nuts` and judged alike. It begins at once, where `Nuts` first compiles for some seconds; `Nuts` catches
    up where much has to be drawn.
    """

    chains: int = 4
    """Number of chains."""
    max_draws: int = 4_000
    """Most draws of each chain; a posterior whose verdict does not hold by then says so."""
    target_acceptance: float = 0.7
    """Acceptance rate that the step size is set to."""

    def __post_init__(self) -> None:
        if self.chains < 2 or self.max_draws < 4 * STRETCH or not 0.5 <= self.target_acceptance < 1:
            raise FitError(
                f"{self}: chains must be 2 or more, max_draws {4 * STRETCH} or more, target_acceptance from 0.5 to 1."
            )


def hmc_draws(
    problem: Problem, method: Hmc, seed: int, progress: Progress
) -> tuple[Float[np.ndarray, "chains draws parameters"], Verdict]:
    """Prepare, sample until the verdict holds, and judge."""
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):  # a trajectory that leaves for nowhere is rejected
        settled = settle(problem, method.chains, method.target_acceptance, random, progress)
        state = settled.chains

        def stretch() -> Part:
            nonlocal state
            state, drawn = go_on(settled.density, state, STRETCH, random)
            return Part(drawn.draws.transpose(2, 0, 1), drawn.divergences, drawn.evaluations)

        for attempt in range(ATTEMPTS):
            maps = settled.density.maps
            theta, verdict = sample(
                settled.arrays,
                maps,
                stretch,
                method.max_draws,
                state.step,
                progress,
                stop_if_diverging=attempt < ATTEMPTS - 1,
            )
            interrupted = any("interrupted" in reason for reason in verdict.reasons)
            if interrupted or not too_many(int(verdict.numbers["divergences"]), theta.shape[0] * theta.shape[1]):
                break
            if attempt < ATTEMPTS - 1:  # the draws are thrown away: chains whose step changes on the way are not exact
                state = replace(state, step=0.4 * state.step)
        return theta, verdict
