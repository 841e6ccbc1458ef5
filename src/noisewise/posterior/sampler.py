"""The compiled side of sampling: stretches of NUTS chains, of fixed shapes.

A point w is mapped by the metric's root to v = (u, z): u goes through the monotone maps to the log odds, z drives the
latent counts. Everything that depends on the data is an argument, so that a second fit of the same shape compiles
nothing.
"""

from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
from blackjax.mcmc.hmc import HMCState
from jaxtyping import Array, Float

from noisewise.posterior.maps import KNOTS, REACH
from noisewise.posterior.target import Shape, TargetData, log_density

PIECE = 2 * REACH / (KNOTS - 1)
MAX_DOUBLINGS = 8


class Space(NamedTuple):
    """The target in the sampler's coordinates."""

    target: TargetData
    """The problem."""
    maps: Any
    """Coefficients of the monotone maps."""
    root: Any
    """Root of the metric: a matrix, or a vector if it is diagonal."""


class At(NamedTuple):
    """Where chains are."""

    points: Any
    """In w."""
    values: Any
    """Log densities there."""
    gradients: Any
    """And their gradients."""


class Run(NamedTuple):
    """A stretch of all chains."""

    points: Any
    """The draws, in w."""
    end: At
    """Where the chains are then."""
    acceptance: Any
    """Acceptance rate of each draw."""
    steps: Any
    """Leapfrog steps of each draw."""
    divergent: Any
    """Which draws diverged."""


def mapped(u: Float[Array, " coordinates"], maps: Array) -> tuple[Array, Array]:
    """The monotone maps and the logarithms of their derivatives."""
    inside = jnp.clip(u, -REACH, REACH)
    place = (inside + REACH) / PIECE
    piece = jnp.clip(jnp.floor(place), 0, KNOTS - 2)
    t = place - piece
    c = jnp.take_along_axis(maps, piece.astype(jnp.int32)[:, None, None], axis=1)[:, 0]
    value = c[:, 0] + t * (c[:, 1] + t * (c[:, 2] + t * (c[:, 3] + t * (c[:, 4] + t * c[:, 5]))))
    slope = c[:, 1] + t * (2 * c[:, 2] + t * (3 * c[:, 3] + t * (4 * c[:, 4] + t * 5 * c[:, 5])))
    return value + slope * (u - inside) / PIECE, jnp.log(slope / PIECE)


def spread(points: Float[Array, "... dimensions"], root: Array) -> Float[Array, "... dimensions"]:
    """From w to v."""
    return points * root if root.ndim == 1 else points @ root.T


def _log_density(point: Array, space: Space, shape: Shape) -> Array:
    v = spread(point, space.root)
    odds, log_slopes = mapped(v[: len(space.maps)], space.maps)
    return log_density(odds, v[len(space.maps) :], space.target, shape) + log_slopes.sum()


@partial(jax.jit, static_argnames=("shape", "draws"))
def run_chains(keys: Array, start: At, step: Array, space: Space, shape: Shape, draws: int) -> Run:
    """Go on with every chain for some draws."""
    identity = jnp.ones(start.points.shape[1])
    kernel = blackjax.nuts(lambda w: _log_density(w, space, shape), step, identity, max_num_doublings=MAX_DOUBLINGS)

    def advance(state: HMCState, key: Array) -> tuple[HMCState, tuple[Array, ...]]:
        state, info = kernel.step(key, state)
        return state, (state.position, info.acceptance_rate, info.num_integration_steps, info.is_divergent)

    def one(key: Array, at: At) -> Run:
        end, (points, *figures) = jax.lax.scan(advance, HMCState(*at), jax.random.split(key, draws))
        return Run(points, At(*end), *figures)

    return jax.vmap(one)(keys, start)
