"""noisewise itself as a method, and its ablations."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from experiments.task import Datasets, Method, Task, encode
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.fit import fit
from noisewise.posterior.result import Posterior
from noisewise.schema import Categorical, Schema
from noisewise.synthesis import synthesize

NO_NOISE = 0.1
"""What the likelihood is told instead of the true noise in the ablation without noise awareness: far below 1 count."""


@dataclass(frozen=True, kw_only=True)
class Napsu(Method):
    """Bayesian maximum entropy with the noise in the likelihood, and multiple imputation."""

    name: str = "NAPSU-MQ"  # type: ignore[misc]  # of the class there, of the variant here
    """How tables call this variant."""
    method: Any = None
    """The method of fitting; None lets noisewise choose."""
    cells: Literal["all", "canonical"] = "all"
    """Which noisy cells enter the likelihood."""
    noise_aware: bool = True
    """Whether the likelihood knows of the noise."""
    pooled: bool = True  # type: ignore[misc]
    """Whether the datasets are pooled."""
    m: int = 100
    """Number of datasets."""
    reference: Literal["first", "last"] = "first"
    """The level of every column that parameters are relative to; it decides which cells are the canonical ones."""

    def measured(self, task: Task) -> NoisyCounts:
        """The noisy counts that the posterior is fitted to."""
        return task.noisy_counts()[0]

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        noisy_counts = self.measured(task)
        given = noisy_counts if self.noise_aware else as_if_exact(noisy_counts)
        given = mirrored(given) if self.reference == "last" else given
        start = time.perf_counter()
        posterior = fit(given, self.method, cells=self.cells, seed=task.seed_of("fit"))
        numbers = numbers_of(posterior) | {"fit_seconds": round(time.perf_counter() - start, 3)}
        drawn = synthesize(posterior, datasets=self.m, seed=task.seed_of("rows"), allow_untrusted=True)
        tables = (drawn[number] for number in range(self.m))
        if self.reference == "last":
            last = np.array(task.schema.sizes) - 1
            tables = (task.schema.decode(last - encode(table, given.schema)) for table in tables)
        return Datasets(tables, numbers=numbers)


def numbers_of(posterior: Posterior) -> dict[str, float]:
    """The figures of a posterior's verdict, and whether it is to be trusted."""
    finite = {name: float(value) for name, value in posterior.verdict.numbers.items() if np.isfinite(value)}
    return finite | {
        "trusted": float(posterior.verdict.trusted),
        "nuts": float(posterior.record.method == "Nuts"),
    }


def mirrored(noisy_counts: NoisyCounts) -> NoisyCounts:
    """The same counts with the levels of every column in reverse order."""
    columns = tuple(Categorical(name=c.name, levels=tuple(reversed(c.labels))) for c in noisy_counts.schema.columns)
    measurements = tuple(replace(m, values=np.flip(m.values).copy()) for m in noisy_counts.measurements)
    schema = Schema(name=noisy_counts.schema.name, column=columns)
    return replace(noisy_counts, schema=schema, measurements=measurements)


def as_if_exact(noisy_counts: NoisyCounts) -> NoisyCounts:
    """The same counts, with the noise left out of the likelihood."""
    measurements = tuple(replace(m, values=m.values.copy(), stddev=NO_NOISE) for m in noisy_counts.measurements)
    return replace(noisy_counts, measurements=measurements)
