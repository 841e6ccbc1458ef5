"""Effective draws per second: the dense density in θ against the fast one, under the same sampler, on Adult.

Run: python -m benchmarks.dense_sampling [epsilon]. Both are sampled by blackjax's no-U-turn sampler, four chains that
start at draws from the posterior, with step sizes set to the same acceptance. The dense side is whitened by
the posterior's own covariance, which is more than the Laplace approximation it would have in practice; compilation and
preparation are not counted on either side.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.posterior import measure
from noisewise.artifacts import Release
from noisewise.posterior.diagnostics import ess_bulk, ess_tail
from noisewise.posterior.hmc import Hmc, hmc_draws
from noisewise.posterior.nuts import _Compiled
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.posterior.settle import settle
from noisewise.posterior.values import expected_counts, values_at
from noisewise.progress import silent

CHAINS, ACCEPTANCE, PACING, SECONDS = 4, 0.8, 6, 60.0


def smallest(counts: np.ndarray) -> float:
    """Smallest effective number of draws over the expected counts (chains, draws, cells)."""
    return float(min(ess_bulk(counts).min(), ess_tail(counts).min()))


def told(name: str, counts: np.ndarray, steps: int, seconds: float) -> float:
    ess, drawn = smallest(counts), counts.shape[0] * counts.shape[1]
    print(
        f"{name:<14}{ess:8.1f} effective draws of {drawn:,} in {seconds:.1f} s: {ess / seconds:.2f} a second, "
        f"{1000 * ess / steps:.2f} per 1,000 gradients, {steps / seconds:.0f} gradients a second"
    )
    return ess / seconds


def paced(go_on: Callable[[], Any], change: Callable[[float], None]) -> None:
    """The step size set to the acceptance rate."""
    for _ in range(PACING):
        accepted = float(np.asarray(go_on().acceptance).mean())
        change(float(np.exp(np.clip(1.5 * (accepted - ACCEPTANCE), -1.0, 0.4))))


def fast(problem: Problem) -> float:
    with np.errstate(all="ignore"):
        settled = settle(problem, CHAINS, ACCEPTANCE, np.random.default_rng(0), silent)
    compiled = _Compiled(settled, 0)
    paced(compiled.go_on, lambda factor: setattr(compiled, "step", compiled.step * factor))
    parts, steps, began = [], 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS / 6:
        run = compiled.go_on()
        steps += int(np.asarray(run.steps).sum())
        parts.append(np.asarray(run.points))
    seconds = time.perf_counter() - began
    v = np.concatenate(parts, 1)
    v = v * compiled.root if compiled.root.ndim == 1 else v @ compiled.root.T
    u = v[..., : settled.arrays.coordinates]
    free = settled.density.maps(u.reshape(-1, u.shape[2]).T)[0]
    counts = expected_counts(settled.arrays, values_at(settled.arrays, free))
    return told("fast, (u, z)", counts.T.reshape(*u.shape[:2], -1), steps, seconds)


def dense(problem: Problem, draws: np.ndarray) -> float:
    import blackjax
    import jax
    import jax.numpy as jnp

    from noisewise.posterior.dense import dense_data, log_density
    from noisewise.posterior.sampler import MAX_DOUBLINGS

    data = dense_data(problem)
    centre, root = jnp.asarray(draws.mean(0)), jnp.asarray(np.linalg.cholesky(np.cov(draws.T)))

    def whitened(w: jax.Array) -> jax.Array:
        return log_density(centre + root @ w, problem.model, data)

    @jax.jit
    def stretch(keys: jax.Array, points: jax.Array, step: jax.Array) -> Any:
        kernel = blackjax.nuts(whitened, step, jnp.ones(points.shape[1]), max_num_doublings=MAX_DOUBLINGS)

        def advance(state: Any, key: jax.Array) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, info.acceptance_rate, info.num_integration_steps)

        def one(key: jax.Array, point: jax.Array) -> Any:
            return jax.lax.scan(advance, kernel.init(point), jax.random.split(key, SHORT))[1]

        return jax.vmap(one)(keys, points)

    class Run:
        step, key = 0.2, jax.random.key(0)
        points = np.linalg.solve(root, (draws[np.linspace(0, len(draws) - 1, CHAINS).astype(int)] - centre).T).T
        acceptance: Any = None
        steps: Any = None
        drawn: Any = None

        def go_on(self) -> "Run":
            self.key, key = jax.random.split(self.key)
            found = stretch(jax.random.split(key, CHAINS), self.points, self.step)
            self.drawn, self.acceptance, self.steps = (np.asarray(of) for of in found)
            self.points = self.drawn[:, -1]
            return self

    run = Run()
    paced(run.go_on, lambda factor: setattr(run, "step", run.step * factor))
    parts, steps, began = [], 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        run.go_on()
        parts.append(run.drawn)
        steps += int(run.steps.sum())
    seconds = time.perf_counter() - began
    theta = np.concatenate(parts, 1) @ np.asarray(root).T + np.asarray(centre)
    counts = [[problem.rows * problem.model.probabilities(one) for one in chain] for chain in theta]
    return told("dense, θ", np.array(counts), steps, seconds)


SHORT = 4
"""Draws of the dense side between two looks at the clock."""


def main(epsilon: float) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name) / "release", epsilon)
        problem = Problem.of(Release(Path(name) / "release").noisy_counts(), NormalPrior(), "all")
    draws, verdict = hmc_draws(problem, Hmc(), 0, silent)
    print(f"Adult, ε = {epsilon}, load {os.getloadavg()[0]:.1f}; the draws they start from: {verdict.summary}")
    ours = fast(problem)
    theirs = dense(problem, draws.reshape(-1, draws.shape[2]))
    print(f"fast / dense: {ours / theirs:.0f} times the smallest effective number of draws per second")


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 1.0)
