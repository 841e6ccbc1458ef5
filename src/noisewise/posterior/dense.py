"""The paper's likelihood, written down as it stands: dense, slow, and the oracle for everything faster.

The noisy counts are s̃ ~ N(n μ(θ), n Σ(θ) + diag(noise variance)) over the measured cells, with a normal
prior on θ (Räisä et al. 2023, after the normal approximation of the multinomial counts). Time grows with
the cube of the cells and memory with their square, so this is for small problems and for tests.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from noisewise.errors import FitError
from noisewise.model.maxent import MaxEnt
from noisewise.posterior.problem import Problem

# The cells of a marginal add up to n, so nΣ is singular and the noise alone bounds the covariance from below. At
# this multiple of n the condition number is 10¹² and four digits of the log density are left.
SMALLEST_VARIANCE = 1e-12


class DenseData(NamedTuple):
    """What the likelihood is given besides θ."""

    noisy: Float[Array, " observed"]
    """Noisy counts of the observed cells."""
    noise_variance: Float[Array, " observed"]
    """Variance of the noise in each."""
    observed: Any
    """Positions of the observed cells among the measured ones."""
    rows: Float[Array, ""]
    """Number of rows n."""
    prior_stddev: Float[Array, ""]
    """Standard deviation of the prior on every parameter."""


def dense_data(problem: Problem) -> DenseData:
    """The observed cells of a problem as JAX arrays."""
    kept = problem.observed.nonzero()[0]
    least = float(np.sqrt(problem.noise_variance[kept].min(initial=np.inf)))
    if least**2 < SMALLEST_VARIANCE * problem.rows:
        raise FitError(
            f"The noise has stddev {least:g}, too small beside {problem.rows:,} rows for double precision. "
            f"Give a stddev of {np.sqrt(SMALLEST_VARIANCE * problem.rows):.1g} or more."
        )
    return DenseData(
        noisy=jnp.asarray(problem.noisy[kept]),
        noise_variance=jnp.asarray(problem.noise_variance[kept]),
        observed=jnp.asarray(kept),
        rows=jnp.asarray(float(problem.rows)),
        prior_stddev=jnp.asarray(float(problem.prior.stddev)),
    )


@partial(jax.jit, static_argnames="model")
def log_density(theta: Float[Array, " parameters"], model: MaxEnt, data: DenseData) -> Float[Array, ""]:
    """Log posterior density of θ up to a constant."""
    residual = data.noisy - data.rows * model.probabilities(theta, jnp)[data.observed]
    root = jnp.linalg.cholesky(_covariance(theta, model, data))
    white = jax.scipy.linalg.solve_triangular(root, residual, lower=True)
    log_likelihood = -0.5 * white @ white - jnp.log(jnp.diagonal(root)).sum()
    return log_likelihood - 0.5 * (theta / data.prior_stddev) @ (theta / data.prior_stddev)


@partial(jax.jit, static_argnames="model")
def log_densities(theta: Float[Array, "draws parameters"], model: MaxEnt, data: DenseData) -> Float[Array, " draws"]:
    """Log density of many draws, a few at a time to bound the memory."""
    return jax.lax.map(lambda t: log_density(t, model, data), theta)


def _covariance(theta: Array, model: MaxEnt, data: DenseData) -> Array:
    root = model.covariance_root(theta, jax.vmap, jnp)[data.observed]
    return data.rows * root @ root.T + jnp.diag(data.noise_variance)
