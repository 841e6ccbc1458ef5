"""PrivBayes with a given network: noisy conditional tables, one after the other.

Source: Zhang, Cormode, Procopiuc, Srivastava & Xiao (2017), PrivBayes. The network is public here; noise is discrete
Gaussian as for every other method, not Laplace.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from experiments.task import Method, Task
from noisewise.workload import Workload


@dataclass(frozen=True, kw_only=True)
class PrivBayes(Method):
    """One noisy table per column given its parents, one dataset of independent rows."""

    network: tuple[tuple[str, tuple[str, ...]], ...]
    """Each column with its parents, parents first."""
    name: str = "PrivBayes"  # type: ignore[misc]
    """How tables call it."""
    pooled: bool = False  # type: ignore[misc]
    """One dataset: nothing to pool."""

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        marginals = tuple(tuple(sorted((c, *parents), key=task.schema.index)) for c, parents in self.network)
        nested = Workload(marginals=marginals)  # on purpose: each conditional has its own table
        (noisy_counts,) = replace(task, workload=nested).noisy_counts()
        codes = np.zeros((task.rows, len(task.schema.names)), dtype=np.int64)
        generator = task.generator("rows")
        for (child, parents), measured in zip(self.network, noisy_counts.measurements, strict=True):
            table = conditional(measured.values, measured.marginal.index(child))
            given = [codes[:, task.schema.index(name)] for name in measured.marginal if name in parents]
            codes[:, task.schema.index(child)] = _draw(table, given, generator.random(task.rows))
        return [task.schema.decode(codes)]


def conditional(noisy: np.ndarray, axis: int) -> np.ndarray:
    """Probabilities of one axis given the others, on the last axis: clipped at 0; an empty row is uniform."""
    counts = np.moveaxis(np.maximum(noisy, 0).astype(float), axis, -1)
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.where(totals > 0, totals, 1), 1 / counts.shape[-1])


def _draw(table: np.ndarray, given: list[np.ndarray], uniforms: np.ndarray) -> np.ndarray:
    rows = table[tuple(given)] if given else np.broadcast_to(table, (len(uniforms), table.shape[-1]))
    cumulative = rows.cumsum(axis=1)
    return np.minimum((uniforms[:, None] >= cumulative).sum(axis=1), table.shape[-1] - 1)
