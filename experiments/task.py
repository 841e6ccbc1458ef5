"""What every method is given, and what every method gives back."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.seeded_noise import SeededNoise
from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.privacy.accounting import PrivacyLoss, calibrate
from noisewise.privacy.budget import Budget
from noisewise.schema import Schema
from noisewise.workload import Marginal, Workload

STREAMS = ("noise", "fit", "rows", "analysis")
"""What randomness is for: each purpose has a stream of its own, so that no two of them are related."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Confidential:
    """A table to protect, as level codes. It is public here; methods treat it as confidential."""

    schema: Schema
    """Its public schema."""
    codes: np.ndarray
    """Level codes, one row per row of the table and one column per column of the schema."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def table(self) -> pa.Table:
        """The table in the values that synthetic data have."""
        return self.schema.decode(self.codes)

    @cached_property
    def _counted(self) -> dict[Marginal, np.ndarray]:
        return {}

    def counts(self, marginal: Marginal) -> np.ndarray:
        """Exact counts of a marginal, one axis per column; remembered."""
        if marginal not in self._counted:
            self._counted[marginal] = tabulate(self.codes, self.schema, marginal)
        return self._counted[marginal]


def tabulate(codes: np.ndarray, schema: Schema, marginal: Marginal) -> np.ndarray:
    """Counts of a marginal of rows given as level codes."""
    shape = schema.shape(marginal)
    cell = np.ravel_multi_index([codes[:, schema.index(name)] for name in marginal], shape)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def encode(table: pa.Table, schema: Schema) -> np.ndarray:
    """Level codes of a table that holds released values only, such as a synthetic dataset."""
    return np.stack([_codes(table[column.name], column.declared_values()) for column in schema.columns], axis=1)


def _codes(values: pa.ChunkedArray, levels: pa.Array) -> np.ndarray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return pc.index_in(values, value_set=levels).fill_null(len(levels)).to_numpy()


@cache
def stddev_for(epsilon: float, rows: int, measurements: int) -> float:
    """Noise per cell when a budget with δ = 1/n² is divided evenly over so many marginals."""
    settled = Budget(epsilon).resolved(rows)
    assert settled.delta is not None
    return calibrate(settled.epsilon, settled.delta, [1.0] * measurements)[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A table to protect, the marginals to measure, the budget, and the seed of everything random."""

    confidential: Confidential
    """The table."""
    workload: Workload
    """The marginals that methods with marginals measure."""
    epsilon: float
    """Privacy budget; δ = 1/n²."""
    seed: int
    """Seed of noise, fits and synthetic data."""

    @property
    def schema(self) -> Schema:
        """The table's schema."""
        return self.confidential.schema

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.confidential.rows

    @property
    def delta(self) -> float:
        """δ of the budget."""
        return float(self.rows) ** -2.0

    def seed_of(self, stream: str, number: int = 0) -> int:
        """A seed of its own for each purpose, and each repetition of it."""
        spawned = np.random.SeedSequence(self.seed, spawn_key=(STREAMS.index(stream), number))
        return int(spawned.generate_state(1, np.uint32)[0])

    def generator(self, stream: str, number: int = 0) -> np.random.Generator:
        """A random stream of its own for each purpose, and each repetition of it."""
        return np.random.default_rng(self.seed_of(stream, number))

    def noisy_counts(self, repeats: int = 1) -> list[NoisyCounts]:
        """The workload measured `repeats` times, all of it within the one budget."""
        stddev = stddev_for(self.epsilon, self.rows, repeats * len(self.workload.marginals))
        noise = SeededNoise(self.seed_of("noise"))
        return [self._measured(stddev, noise) for _ in range(repeats)]

    def _measured(self, stddev: float, noise: SeededNoise) -> NoisyCounts:
        rho = PrivacyLoss(stddevs=(stddev,) * len(self.workload.marginals)).rho
        statement = PrivacyStatement(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=rho,
            accountant="experiment: the noise has a seed, so there is no privacy",
            steps=(PrivacyStep(name="measure", mechanism="seeded noise", rho=rho),),
        )
        measurements = tuple(
            Measurement(marginal=m, values=noise.gaussian(self.confidential.counts(m), stddev, 2, rho), stddev=stddev)
            for m in self.workload.marginals
        )
        return NoisyCounts(schema=self.schema, rows=self.rows, measurements=measurements, privacy=statement)


class Datasets(list[pa.Table]):
    """Synthetic datasets, with what their method has to say about itself."""

    def __init__(self, tables: Iterable[pa.Table], numbers: dict[str, float]) -> None:
        super().__init__(tables)
        self.numbers = numbers
        """Diagnostics by name."""


class Method(ABC):
    """A way from a confidential table to synthetic datasets."""

    name: ClassVar[str]
    """How tables and pictures call it."""
    pooled: ClassVar[bool]
    """Whether its datasets are pooled; otherwise the first one is analysed as if it were real."""

    @abstractmethod
    def datasets(self, task: Task) -> Sequence[pa.Table]:
        """Synthetic datasets of as many rows as the table."""
