"""PEP: private entropy projection, multiplicative weights on the table of the full domain.

In each step the noisy cell that the table answers worst is answered exactly, by the smallest change in relative
entropy. Cells and answers are laid out in one order, the schema's, which the published run on the census table was most
likely not. The table is kept up to a factor, so that a step touches the part inside the cell only, and the marginals
are brought forward instead of being summed anew.

Source: Liu, Vietri & Wu (2021), Iterative Methods for Private Synthetic Data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from experiments.task import Method, Task
from noisewise.noisy_counts import NoisyCounts

MAX_CELLS = 5_000_000
SMALLEST = 1e-9
"""Noisy answers are brought into [SMALLEST, 1 - SMALLEST]: what some distribution can have."""
RESCALE_EVERY = 200
"""Steps after which table and marginals are summed anew, against the growth of rounding errors and factors."""


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
        cells = task.generator("rows").choice(table.size, size=task.rows, p=table.reshape(-1))
        return [task.schema.decode(np.stack(np.unravel_index(cells, table.shape), axis=1))]


def project(noisy_counts: NoisyCounts, steps: int) -> np.ndarray:
    """The table of probabilities over the full domain, after so many corrections."""
    schema = noisy_counts.schema
    if np.prod(schema.sizes, dtype=float) > MAX_CELLS:
        raise ValueError(f"PEP keeps the full domain in memory; this one has more than {MAX_CELLS:,} cells.")
    columns = [tuple(schema.index(name) for name in m.marginal) for m in noisy_counts.measurements]
    wanted = [np.clip(m.values / noisy_counts.rows, SMALLEST, 1 - SMALLEST) for m in noisy_counts.measurements]
    table = np.full(schema.sizes, 1 / np.prod(schema.sizes))
    answers = [_marginal(table, kept) for kept in columns]
    for step in range(1, steps + 1):
        total = answers[0].sum()
        errors = [np.abs(want - have / total) for want, have in zip(wanted, answers, strict=True)]
        worst = max(range(len(errors)), key=lambda i: errors[i].max())
        cell = np.unravel_index(errors[worst].argmax(), errors[worst].shape)
        if errors[worst][cell] == 0:
            break
        answer = answers[worst][cell] / total
        factor = wanted[worst][cell] * (1 - answer) / (answer * (1 - wanted[worst][cell]))
        inside = _inside(columns[worst], cell, table.ndim)
        for i, kept in enumerate(columns):
            answers[i] = _brought_forward(answers[i], kept, table[inside], inside, factor - 1)
        table[inside] *= factor
        if step % RESCALE_EVERY == 0:
            table /= table.sum()
            answers = [_marginal(table, kept) for kept in columns]
    return table / table.sum()


def _marginal(table: np.ndarray, kept: tuple[int, ...]) -> np.ndarray:
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept))


def _inside(kept: tuple[int, ...], cell: tuple[np.intp, ...], columns: int) -> tuple[slice, ...]:
    """The part of the table inside a marginal's cell; every axis is kept."""
    levels = dict(zip(kept, cell, strict=True))
    return tuple(
        slice(int(levels[axis]), int(levels[axis]) + 1) if axis in levels else slice(None) for axis in range(columns)
    )


def _brought_forward(
    answer: np.ndarray, kept: tuple[int, ...], part: np.ndarray, inside: tuple[slice, ...], growth: float
) -> np.ndarray:
    """A marginal after the part inside a cell has grown by a multiple of itself."""
    changed = answer.copy()
    changed[tuple(inside[axis] for axis in kept)] += growth * _marginal(part, kept)
    return changed
