"""RAP: relaxed adaptive projection in its one-shot form, on all cells of the workload.

A table of relaxed rows, one probability vector per column, is moved by Adam until its answers match the noisy ones;
rows are then drawn from the relaxed rows. After every step the rows are brought back onto probability vectors by
sparsemax, and the gradient at the projected point moves the point before projection, as in the authors' code: a
probability that has become zero can come back. The published run of the comparison gave the noise the size of the
relaxed table where the number of records belongs; here the answers are noisy counts over the number of records.

Source: Aydore, Brown, Kearns, Kenthapadi, Melis, Roth & Siva (2021), Differentially Private Query Release Through
Adaptive Projection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pyarrow as pa

from experiments.task import Method, Task


@dataclass(frozen=True, kw_only=True)
class Rap(Method):
    """One noisy measurement, a relaxed table, one dataset of independent rows."""

    name: str = "RAP"  # type: ignore[misc]
    """How tables call it."""
    pooled: bool = False  # type: ignore[misc]
    """One dataset: nothing to pool."""
    relaxed_rows: int = 1000
    """Rows of the relaxed table."""
    iterations: int = 5000
    """Steps of Adam."""
    learning_rate: float = 0.1
    """Adam's at the start; it falls to a hundredth along a half cosine, so that the answers settle."""

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        (noisy_counts,) = task.noisy_counts()
        columns = tuple(tuple(task.schema.index(name) for name in m.marginal) for m in noisy_counts.measurements)
        wanted = [jnp.asarray(m.values / task.rows, jnp.float32) for m in noisy_counts.measurements]
        start = task.generator("fit").uniform(-1, 1, size=(self.relaxed_rows, sum(task.schema.sizes)))
        relaxed = _fit(
            jnp.asarray(start, jnp.float32), wanted, columns, task.schema.sizes, self.iterations, self.learning_rate
        )
        return [task.schema.decode(draw(np.asarray(relaxed), task.schema.sizes, task.rows, task.generator("rows")))]


def draw(relaxed: np.ndarray, sizes: tuple[int, ...], rows: int, generator: np.random.Generator) -> np.ndarray:
    """Rows of codes: each from a relaxed row chosen at random, its columns independent given that row."""
    chosen = generator.integers(len(relaxed), size=rows)
    codes, start = np.zeros((rows, len(sizes)), dtype=np.int64), 0
    for column, size in enumerate(sizes):
        cumulative = relaxed[chosen, start : start + size].cumsum(axis=1)
        uniforms = generator.random(rows) * cumulative[:, -1]
        codes[:, column] = np.minimum((uniforms[:, None] >= cumulative).sum(axis=1), size - 1)
        start += size
    return codes


@partial(jax.jit, static_argnums=(2, 3, 4, 5))
def _fit(
    start: jax.Array,
    wanted: list[jax.Array],
    columns: tuple[tuple[int, ...], ...],
    sizes: tuple[int, ...],
    iterations: int,
    learning_rate: float,
) -> jax.Array:
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, iterations, alpha=0.01))

    def loss(parts: list[jax.Array]) -> jax.Array:
        errors = [jnp.sum((_answer(parts, kept) - want) ** 2) for kept, want in zip(columns, wanted, strict=True)]
        return sum(errors, jnp.zeros(()))

    def step(_: int, state: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
        weights, moments = state
        gradient = jnp.concatenate(jax.grad(loss)(_probabilities(weights, sizes)), axis=1)
        updates, moments = optimiser.update(gradient, moments)
        return optax.apply_updates(weights, updates), moments

    weights, _ = jax.lax.fori_loop(0, iterations, step, (start, optimiser.init(start)))
    return jnp.concatenate(_probabilities(weights, sizes), axis=1)


def _probabilities(weights: jax.Array, sizes: tuple[int, ...]) -> list[jax.Array]:
    bounds = np.cumsum(sizes)[:-1]
    return [jax.vmap(_sparsemax)(part) for part in jnp.split(weights, bounds, axis=1)]


def _sparsemax(scores: jax.Array) -> jax.Array:
    """The probability vector nearest to the scores."""
    ordered = jnp.sort(scores)[::-1]
    ranks = jnp.arange(1, len(scores) + 1)
    sums = jnp.cumsum(ordered)
    kept = jnp.sum(1 + ranks * ordered > sums)
    return jnp.maximum(scores - (sums[kept - 1] - 1) / kept, 0)


def _answer(parts: list[jax.Array], kept: tuple[int, ...]) -> jax.Array:
    """The marginal of some columns: the mean over relaxed rows of the product of their probabilities."""
    letters = "abcdefgh"[: len(kept)]
    rule = ",".join(f"r{letter}" for letter in letters) + "->" + letters
    return jnp.einsum(rule, *(parts[column] for column in kept)) / len(parts[0])
