"""Datasets drawn from a posterior, partition by partition."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisewise.errors import FitError
from noisewise.model.sampling import RowSampler
from noisewise.posterior.result import Posterior
from noisewise.schema import Schema
from noisewise.synthesis.series import PARTITION_ROWS, SyntheticDatasets
from noisewise.workload import Marginal

MAX_SEED = 2**128  # what NumPy's seed sequence takes in full


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnDatasets(SyntheticDatasets):
    """Datasets drawn from a posterior when asked for; nothing is kept."""

    posterior: Posterior
    """Where the datasets come from."""
    rows: int
    """Rows of each dataset."""
    seed: int
    """Seed of the whole series."""
    chosen: tuple[int, ...]
    """The posterior draw behind each dataset; no draw is used twice."""
    partition_rows: int = PARTITION_ROWS
    """Rows of a partition. Only tests have a reason to change it."""

    @property
    def schema(self) -> Schema:  # type: ignore[override]  # an attribute of the base, computed here
        """The public schema."""
        return self.posterior.noisy_counts.schema

    @property
    def original_rows(self) -> int:  # type: ignore[override]
        """Rows of the confidential table; public."""
        return self.posterior.noisy_counts.rows

    @property
    def marginals(self) -> tuple[Marginal, ...]:  # type: ignore[override]
        """The marginals that were measured."""
        return self.posterior.noisy_counts.marginals

    @property
    def warnings(self) -> tuple[str, ...]:  # type: ignore[override]
        """What the posterior's verdict has against it."""
        return self.posterior.verdict.reasons

    def __len__(self) -> int:
        return len(self.chosen)

    def table(self, number: int) -> pa.Table:
        """Draw dataset `number`."""
        return pa.concat_tables(self.partitions(number, range(self.partition_count)))

    @property
    def partition_count(self) -> int:
        """How many partitions each dataset comes in."""
        return -(-self.rows // self.partition_rows)

    def partitions(self, number: int, which: range) -> Iterator[pa.Table]:
        """Draw some of the partitions of dataset `number`, each from its own place in the dataset's random stream.

        Places are so far apart that no partition reaches the next one's.
        """
        sampler = RowSampler.of(self.posterior.model, self.posterior.draws[self.chosen[number]])
        start = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(1, number)))
        for partition in which:
            stream = np.random.Generator(start.jumped(partition))
            rows = min(self.partition_rows, self.rows - partition * self.partition_rows)
            yield self.schema.decode(sampler.draw(rows, stream), stream)


def synthesize(
    posterior: Posterior,
    datasets: int = 100,
    rows: int | None = None,
    *,
    seed: int = 0,
    allow_untrusted: bool = False,
) -> DrawnDatasets:
    """Draw m synthetic datasets, each from a posterior draw of its own, rows independent.

    `rows` defaults to the confidential table's number of rows. A posterior whose verdict failed is refused
    unless `allow_untrusted` says otherwise: intervals from it need not cover.
    """
    available = len(posterior.draws)
    rows = posterior.noisy_counts.rows if rows is None else rows
    if not posterior.verdict.trusted and not allow_untrusted:
        raise FitError(
            f"This posterior is not to be trusted: {' '.join(posterior.verdict.reasons)} Fit with another method, "
            "or say allow_untrusted=True (--allow-untrusted) to go on regardless."
        )
    if datasets < 1 or rows < 1:
        raise FitError(f"datasets={datasets} and rows={rows} must both be at least 1.")
    if not 0 <= seed < MAX_SEED:
        raise FitError(f"seed={seed} must be a whole number from 0 to 2**128 - 1.")
    if datasets > available:
        raise FitError(
            f"{datasets} datasets need as many posterior draws and there are {available}. "
            "Ask for fewer, or fit with more."
        )
    chooser = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,))))
    chosen = tuple(int(i) for i in chooser.permutation(available)[:datasets])
    return DrawnDatasets(posterior=posterior, rows=rows, seed=seed, chosen=chosen)
