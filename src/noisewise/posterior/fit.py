"""`fit`: from noisy counts to a posterior. Post-processing: it costs no privacy, however often it is run."""

import dataclasses
from typing import Literal

import numpy as np

from noisewise.errors import FitError
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.laplace import Laplace, laplace_draws
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.posterior.result import FitRecord, Posterior
from noisewise.progress import Progress, silent

Method = Laplace


def fit(
    noisy_counts: NoisyCounts,
    method: Method | None = None,
    *,
    prior: NormalPrior | None = None,
    cells: Literal["all", "canonical"] = "all",
    seed: int = 0,
    progress: Progress = silent,
) -> Posterior:
    """Fit the maximum-entropy model to noisy counts, with the noise in the likelihood.

    The same noisy counts, settings and seed give the same posterior. Look at `posterior.verdict` before
    using it: a posterior that could not be computed well says so.
    """
    import jax

    method = method or Laplace()
    prior = prior or NormalPrior()
    problem = Problem.of(noisy_counts, prior, cells)
    if problem.model.parameters == 0:
        raise FitError("Every measured column has a single level: there is nothing to estimate. Add levels or columns.")
    with jax.enable_x64(True):
        theta, verdict = laplace_draws(problem, method, seed, progress)
    if not np.isfinite(theta).all():
        raise FitError("The posterior is not finite. Check the noisy counts, their noise and the prior.")
    record = FitRecord(
        method=type(method).__name__,
        settings=dataclasses.asdict(method),
        prior_stddev=prior.stddev,
        cells=cells,
        seed=seed,
    )
    return Posterior(noisy_counts=noisy_counts, theta=theta, verdict=verdict, record=record)
