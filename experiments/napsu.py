"""noisewise itself as a method, and its ablations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from experiments.task import Method, Task
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.fit import fit
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

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        (noisy_counts,) = task.noisy_counts()
        given = noisy_counts if self.noise_aware else as_if_exact(noisy_counts)
        posterior = fit(given, self.method, cells=self.cells, seed=task.seed_of("fit"))
        return synthesize(posterior, datasets=self.m, seed=task.seed_of("rows"), allow_untrusted=True)


def as_if_exact(noisy_counts: NoisyCounts) -> NoisyCounts:
    """The same counts, with the noise left out of the likelihood."""
    measurements = tuple(replace(m, values=m.values.copy(), stddev=NO_NOISE) for m in noisy_counts.measurements)
    return replace(noisy_counts, measurements=measurements)
