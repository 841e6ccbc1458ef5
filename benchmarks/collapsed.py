"""What latent counts cost in effective draws: the same chains with and without them, on Adult.

Run: python -m benchmarks.collapsed [epsilon ...]. The density without latent counts is the dense one, which exact
Gaussian messages on the tree would compute too: it says how many gradients chains need in that form, not how long
one takes.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.posterior import measure
from noisewise.artifacts import Release
from noisewise.posterior.chains import Chains, adapted, chains_at, go_on
from noisewise.posterior.diagnostics import ess_bulk, ess_tail
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.posterior.settle import Settled, averaged_root, settle
from noisewise.posterior.values import expected_counts, values_at
from noisewise.progress import silent

CHAINS, DRAWS, ACCEPTANCE, SEEDS = 4, 300, 0.7, 3


def without_latent(problem: Problem, settled: Settled) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The dense density, in the same coordinates."""
    import jax
    import jax.numpy as jnp

    from noisewise.posterior.dense import dense_data, log_density
    from noisewise.posterior.sampler import mapped
    from noisewise.posterior.target import pass_down, target_data, theta_from

    data, shape = target_data(settled.arrays)
    seen, maps, no_latent = dense_data(problem), settled.density.maps.coefficients, jnp.zeros(shape.latent)

    def one(u: jax.Array) -> jax.Array:
        free, log_slopes = mapped(u, maps)
        theta = theta_from(pass_down(free, no_latent, data, shape).log_p, data)
        return log_density(theta, problem.model, seen) + log_slopes.sum()

    many = jax.jit(jax.vmap(jax.value_and_grad(one)))

    def density(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = many(points.T)
        return np.array(value), np.array(gradient).T

    return density


def paced(density: Callable, chains: Chains, random: np.random.Generator) -> Chains:
    """The step size set to the acceptance rate."""
    for _ in range(12):
        chains, stretch = go_on(density, chains, 4, random)
        chains = replace(chains, step=adapted(chains.step, stretch.acceptance, ACCEPTANCE))
    return chains


def per_thousand(density: Callable, chains: Chains, settled: Settled, random: np.random.Generator) -> float:
    """Smallest effective draws of all expected counts per 1,000 gradients."""
    _, stretch = go_on(density, chains, DRAWS, random)
    u = stretch.draws[:, : settled.arrays.coordinates]
    free = settled.density.maps(np.moveaxis(u, 1, 0).reshape(u.shape[1], -1))[0]
    counts = expected_counts(settled.arrays, values_at(settled.arrays, free))
    counts = np.moveaxis(counts.reshape(-1, DRAWS, CHAINS), (0, 1, 2), (2, 1, 0))
    return float(1000 * min(ess_bulk(counts).min(), ess_tail(counts).min()) / stretch.evaluations)


def main(epsilons: list[float]) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    print("smallest ESS per 1,000 gradients, by seed")
    for epsilon in epsilons:
        with tempfile.TemporaryDirectory() as name:
            measure(Path(name) / "release", epsilon)
            problem = Problem.of(Release(Path(name) / "release").noisy_counts(), NormalPrior(), "all")
        rows = []
        for seed in range(SEEDS):
            random = np.random.default_rng(seed)
            with np.errstate(all="ignore"):
                settled = settle(problem, CHAINS, ACCEPTANCE, random, silent)
                chains = paced(settled.density, settled.chains, random)
                with_latent = per_thousand(settled.density, chains, settled, random)
                dense = without_latent(problem, settled)
                chains, pilot = go_on(settled.density, chains, 48, random)
                start = pilot.draws[:, : settled.arrays.coordinates]
                root = averaged_root(dense, np.concatenate(start[::12], axis=1))
                alone = paced(dense, chains_at(dense, start[-1], root, chains.step), random)
                rows.append((with_latent, per_thousand(dense, alone, settled, random)))
        told = "  ".join(f"{a:.1f} : {b:.1f}" for a, b in rows)
        ratio = np.exp(np.mean([np.log(b / a) for a, b in rows]))
        print(f"ε = {epsilon}: with latent counts : without  {told}   without / with {ratio:.2f}")


if __name__ == "__main__":
    main([float(e) for e in sys.argv[1:]] or [1.0, 0.1])
