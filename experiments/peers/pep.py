"""PEP: private entropy projection, multiplicative weights on the table of the full domain.

In each step the noisy cell that the table answers worst is answered exactly, by the smallest change in relative
entropy. Cells and answers are laid out in one order, the schema's, which the published run on the census table was most
likely not.

Source: Liu, Vietri & Wu (2021), Iterative Methods for Private Synthetic Data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from experiments.task import Method, Task
from noisewise.noisy_counts import NoisyCounts

MAX_CELLS = 5_000_000


@dataclass(frozen=True, kw_only=True)
class Pep(Method):
    """One noisy measurement, a table of the full domain, one dataset of independent rows."""

    name: str = "PEP"  # type: ignore[misc]
    """How tables call it."""
    pooled: bool = False  # type: ignore[misc]
    """One dataset: nothing to pool."""
    steps: int = 1000
    """Largest number of corrections."""

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        (noisy_counts,) = task.noisy_counts()
        table = project(noisy_counts, self.steps)
        cells = task.generator(20).choice(table.size, size=task.rows, p=table.reshape(-1))
        return [task.schema.decode(np.stack(np.unravel_index(cells, table.shape), axis=1))]


def project(noisy_counts: NoisyCounts, steps: int) -> np.ndarray:
    """The table of probabilities over the full domain, after so many corrections."""
    schema = noisy_counts.schema
    if np.prod(schema.sizes, dtype=float) > MAX_CELLS:
        raise ValueError(f"PEP keeps the full domain in memory; this one has more than {MAX_CELLS:,} cells.")
    table = np.full(schema.sizes, 1 / np.prod(schema.sizes))
    wanted = [_possible(m.values / noisy_counts.rows) for m in noisy_counts.measurements]
    columns = [tuple(schema.index(name) for name in m.marginal) for m in noisy_counts.measurements]
    for _ in range(steps):
        answers = [_marginal(table, kept) for kept in columns]
        errors = [np.abs(want - have) for want, have in zip(wanted, answers, strict=True)]
        worst = max(range(len(errors)), key=lambda i: errors[i].max())
        cell = np.unravel_index(errors[worst].argmax(), errors[worst].shape)
        if errors[worst][cell] == 0:
            break
        table = _corrected(table, columns[worst], cell, wanted[worst][cell], answers[worst][cell])
    return table


def _possible(answers: np.ndarray) -> np.ndarray:
    """Noisy answers as probabilities that some distribution can have."""
    return np.clip(answers, 1e-9, 1 - 1e-9)


def _marginal(table: np.ndarray, kept: tuple[int, ...]) -> np.ndarray:
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept))


def _corrected(
    table: np.ndarray, kept: tuple[int, ...], cell: tuple[np.intp, ...], wanted: float, answer: float
) -> np.ndarray:
    """Scale the cell's part of the table to the wanted probability and the rest to its complement."""
    inside: list[slice | np.intp] = [slice(None)] * table.ndim
    for axis, level in zip(kept, cell, strict=True):
        inside[axis] = level
    corrected = table * ((1 - wanted) / (1 - answer))
    corrected[tuple(inside)] = table[tuple(inside)] * (wanted / answer)
    return corrected / corrected.sum()
