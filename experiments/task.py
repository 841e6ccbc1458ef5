"""What every method is given, and what every method gives back."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from experiments.seeded_noise import SeededNoise
from noisewise.confidential.counts import ExactCounts, count
from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.privacy.accounting import PrivacyLoss, calibrate
from noisewise.privacy.budget import Budget
from noisewise.schema import Schema
from noisewise.workload import Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A table to protect, the marginals to measure, the budget, and the seed of everything random."""

    table: pa.Table
    """The table; public here, treated as confidential."""
    schema: Schema
    """Its schema."""
    workload: Workload
    """The marginals that methods with marginals measure."""
    epsilon: float
    """Privacy budget; δ = 1/n²."""
    seed: int
    """Seed of noise, fits and synthetic data."""

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return len(self.table)

    @cached_property
    def exact(self) -> ExactCounts:
        """Exact counts of the workload."""
        return count(self.table, self.schema, self.workload.marginals)

    def generator(self, stream: int) -> np.random.Generator:
        """A random stream of its own for each purpose."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(stream,)))

    def stddev(self, measurements: int) -> float:
        """Noise per cell when the budget is divided evenly over so many marginals."""
        settled = Budget(self.epsilon).resolved(self.rows)
        assert settled.delta is not None
        return calibrate(settled.epsilon, settled.delta, [1.0] * measurements)[0]

    def noisy_counts(self, repeats: int = 1) -> list[NoisyCounts]:
        """The workload measured `repeats` times, all of it within the one budget."""
        stddev = self.stddev(repeats * len(self.workload.marginals))
        noise = SeededNoise(self.seed)
        return [self._measured(stddev, noise) for _ in range(repeats)]

    def _measured(self, stddev: float, noise: SeededNoise) -> NoisyCounts:
        rho = PrivacyLoss(stddevs=(stddev,) * len(self.workload.marginals)).rho
        statement = PrivacyStatement(
            epsilon=self.epsilon,
            delta=self.rows**-2.0,
            rho=rho,
            accountant="experiment: the noise has a seed, so there is no privacy",
            steps=(PrivacyStep(name="measure", mechanism="seeded noise", rho=rho),),
        )
        measurements = tuple(
            Measurement(marginal=m, values=noise.gaussian(self.exact.tables[m], stddev, 2, rho), stddev=stddev)
            for m in self.workload.marginals
        )
        return NoisyCounts(schema=self.schema, rows=self.rows, measurements=measurements, privacy=statement)


class Method(ABC):
    """A way from a confidential table to synthetic datasets."""

    name: ClassVar[str]
    """How tables and pictures call it."""
    pooled: ClassVar[bool]
    """Whether its datasets are pooled; otherwise the first one is analysed as if it were real."""

    @abstractmethod
    def datasets(self, task: Task) -> Sequence[pa.Table]:
        """Synthetic datasets of as many rows as the table."""
