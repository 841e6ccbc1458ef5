"""AIM: the adaptive and iterative mechanism, on top of `mbi`.

All one-way marginals are measured, then round after round the marginal that the model misses most, by the exponential
mechanism; noise and selection get finer when a round has taught nothing new, and the last round spends what is left.
Adapted to replaced rows and a public number of rows: a marginal with Gaussian noise costs ρ = 1/stddev², a marginal
moves by up to 2 in the 1-norm, and the whole budget (ε, δ) is the ρ whose conversion gives exactly that δ.

Source: McKenna, Mullins, Sheldon & Miklau (2022), AIM: An Adaptive and Iterative Mechanism for Differentially Private
Synthetic Data.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from opt_einsum import contract

from experiments.peers.pgm import double_precision, draw, estimate
from experiments.seeded_noise import SeededNoise
from experiments.task import Datasets, Method, Task
from noisewise.model.junction_tree import junction_tree
from noisewise.noisy_counts import Measurement
from noisewise.privacy.accounting import concentrated_delta
from noisewise.workload import Marginal

MEASURING = 0.9
"""Share of every round that measuring gets; selection gets the rest."""


@dataclass(frozen=True, kw_only=True)
class Aim(Method):
    """Marginals chosen one after the other within the budget, one fit, one dataset of independent rows."""

    name: str = "AIM"  # type: ignore[misc]
    """How tables call it."""
    pooled: bool = False  # type: ignore[misc]
    """One dataset: nothing to pool."""
    degree: int = 2
    """Candidates are all sets of up to so many columns."""
    max_cells: int = 200_000
    """Largest model, in cells of its junction tree; the part of the budget that is spent allows the same part of it."""
    rounds_per_column: int = 16
    """Most rounds, for each column."""
    round_iterations: int = 200
    """Steps of mirror descent after each round."""
    iterations: int = 1000
    """Steps of the last fit."""

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        with double_precision():
            measured, spent = self.measured(task)
            model = estimate(task.schema, measured, task.rows, self.iterations)
            codes = draw(model, task.schema, task.rows, task.seed_of("rows"))
        numbers = {"rounds": float(len(measured) - len(task.schema.names)), "rho": spent}
        return Datasets([task.schema.decode(codes)], numbers=numbers)

    def measured(self, task: Task) -> tuple[list[Measurement], float]:
        """Everything measured, and the ρ it cost, selection included."""
        budget, noise = whole_rho(task.epsilon, task.delta), SeededNoise(task.seed_of("noise"))
        names = task.schema.names
        rounds = self.rounds_per_column * len(names)
        stddev = math.sqrt(rounds / (MEASURING * budget))
        epsilon = math.sqrt(8 * (1 - MEASURING) * budget / rounds)
        measured = [_measure(task, (name,), stddev, noise) for name in names]
        spent = len(names) / stddev**2
        model = estimate(task.schema, measured, task.rows, self.round_iterations)
        last = False
        while not last:
            left = budget - spent
            last = left < 2 * (1 / stddev**2 + epsilon**2 / 8)
            if last:
                stddev, epsilon = math.sqrt(1 / (MEASURING * left)), math.sqrt(8 * (1 - MEASURING) * left)
            marginal = self._chosen(task, model, measured, stddev, epsilon, spent / budget, noise)
            measured.append(_measure(task, marginal, stddev, noise))
            spent += 1 / stddev**2 + epsilon**2 / 8
            before = answer(model, marginal, task.rows)
            model = estimate(task.schema, measured, task.rows, self.round_iterations, start=model)
            if np.abs(answer(model, marginal, task.rows) - before).sum() <= _expected_noise(stddev, before.size):
                stddev, epsilon = stddev / 2, 2 * epsilon
        return measured, spent

    def _chosen(
        self,
        task: Task,
        model: Any,
        measured: Sequence[Measurement],
        stddev: float,
        epsilon: float,
        share: float,
        noise: SeededNoise,
    ) -> Marginal:
        """The marginal of the next round: large error beyond what noise would bring, and a model of allowed size."""
        names, sizes = task.schema.names, task.schema.sizes
        candidates = [c for k in range(1, self.degree + 1) for c in combinations(names, k)]
        largest = [c for c in candidates if len(c) == self.degree]
        weights = {c: sum(len(set(c) & set(other)) for other in largest) for c in candidates}
        held = [tuple(task.schema.index(n) for n in m.marginal) for m in measured]
        allowed = [
            c
            for c in candidates
            if len(c) == 1
            or junction_tree(sizes, [*held, tuple(task.schema.index(n) for n in c)]).cells <= share * self.max_cells
        ]
        scores = np.array(
            [
                weights[c]
                * (
                    np.abs(task.confidential.counts(c).reshape(-1) - answer(model, c, task.rows)).sum()
                    - _expected_noise(stddev, int(np.prod(task.schema.shape(c))))
                )
                for c in allowed
            ]
        )
        return allowed[noise.choose(scores, 2 * max(weights[c] for c in allowed), epsilon)]


def whole_rho(epsilon: float, delta: float) -> float:
    """The largest ρ whose conversion promises (ε, δ)."""
    low, high = 0.0, epsilon  # at ρ = ε the conversion promises nothing
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if concentrated_delta(epsilon, middle) <= delta else (low, middle)
    return low


def _measure(task: Task, marginal: Marginal, stddev: float, noise: SeededNoise) -> Measurement:
    values = noise.gaussian(task.confidential.counts(marginal), stddev, 2, 1 / stddev**2)
    return Measurement(marginal=marginal, values=values, stddev=stddev)


def answer(model: Any, marginal: Marginal, rows: int) -> np.ndarray:
    """The model's counts of any marginal, by summing the product of its factors.

    The package can do this too, and compiles a program for every marginal of every round.
    """
    names = list(model.domain.attributes)
    operands: list[Any] = []
    for clique in model.potentials.cliques:
        factor = np.asarray(model.potentials[clique].values)
        operands += [np.exp(factor - factor.max()), [names.index(name) for name in clique]]
    for name in set(marginal) - {name for clique in model.potentials.cliques for name in clique}:
        operands += [np.ones(model.domain.project((name,)).size()), [names.index(name)]]
    counts = contract(*operands, [names.index(name) for name in marginal], optimize="greedy").reshape(-1)
    return np.asarray(rows * counts / counts.sum())


def _expected_noise(stddev: float, cells: int) -> float:
    """Expected 1-norm of the noise on so many cells."""
    return math.sqrt(2 / math.pi) * stddev * cells
