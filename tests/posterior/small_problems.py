"""Small inference problems, as arrays, for the tests of every method."""

import numpy as np

from noisewise.model.maxent import MaxEnt
from noisewise.posterior.problem import NormalPrior, Problem, canonical_cells


def problem(sizes, marginals, noisy, stddev, rows, prior=10.0, cells="all") -> Problem:
    model = MaxEnt.of(sizes, marginals)
    noisy = np.asarray(noisy, float)
    variance = np.broadcast_to(np.square(np.asarray(stddev, float)), noisy.shape).copy()
    observed = np.ones(len(noisy), bool) if cells == "all" else canonical_cells(model)
    return Problem(
        model=model, noisy=noisy, noise_variance=variance, observed=observed, rows=rows, prior=NormalPrior(stddev=prior)
    )


def drawn_problem(sizes, marginals, rows, stddev, seed=0, scale=0.7, **settings) -> tuple[Problem, np.ndarray]:
    """Counts drawn from the model itself, with noise; and the parameters behind them."""
    random = np.random.default_rng(seed)
    model = MaxEnt.of(sizes, marginals)
    theta = random.normal(0, scale, model.parameters)
    covariance = rows * model.covariance(theta)
    exact = random.multivariate_normal(rows * model.probabilities(theta), covariance, method="eigh")
    noisy = np.rint(exact + random.normal(0, stddev, len(exact)))
    return problem(sizes, marginals, noisy, stddev, rows, **settings), theta
