"""Synthetic datasets: one posterior draw per dataset, rows independent given the draw.

Nothing here needs more than NumPy and PyArrow, so that an analyst can draw further datasets from a release. Dataset
number i is drawn from a random stream of its own, derived from the seed and i: the same bytes come out
in another process, for any one dataset alone, and whatever the order.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisewise.errors import FitError, ReleaseError
from noisewise.model.sampling import draw_rows
from noisewise.posterior.result import Posterior
from noisewise.progress import Progress, silent
from noisewise.schema import Categorical, Column, Schema
from noisewise.workload import Marginal

MAX_WORKERS = 4  # more threads wait for each other
MAX_SEED = 2**128  # what NumPy's seed sequence takes in full


class SyntheticDatasets(Sequence):  # type: ignore[type-arg]  # with it, run-time type checkers would draw datasets
    """m synthetic datasets, each an Arrow table that is made (or read) only when it is asked for.

    Categorical columns come dictionary-encoded with all of the schema's levels, numbers and dates as what stands for
    their bin or period (or drawn from within it, as the schema says), booleans as booleans, missing values as nulls.
    """

    schema: Schema
    """The public schema."""
    rows: int
    """Rows of each synthetic dataset."""
    original_rows: int
    """Rows of the confidential table; public."""
    marginals: tuple[Marginal, ...]
    """The marginals that were measured: what the release can support."""
    warnings: tuple[str, ...] = ()
    """What a reader of any result must be told, such as a posterior that is not to be trusted."""

    def table(self, number: int) -> pa.Table:
        """Dataset `number`, counted from 0."""
        raise NotImplementedError

    def part(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of dataset `number`, which may be cheaper than all of them."""
        return self.table(number).select(list(columns))

    @overload
    def __getitem__(self, number: int) -> pa.Table: ...
    @overload
    def __getitem__(self, number: slice) -> "SyntheticDatasets": ...
    def __getitem__(self, number: "int | slice") -> "pa.Table | SyntheticDatasets":
        if isinstance(number, slice):
            return SomeDatasets(whole=self, numbers=range(len(self))[number])
        if not -len(self) <= number < len(self):
            raise IndexError(f"There is no dataset {number}: they are numbered 0 to {len(self) - 1}.")
        return self.table(number % len(self))

    def __iter__(self) -> Iterator[pa.Table]:
        return (self.table(i) for i in range(len(self)))


class SomeDatasets(SyntheticDatasets):
    """Some of a series of datasets, such as `datasets[:20]`; what is known of the series goes with them."""

    def __init__(self, *, whole: SyntheticDatasets, numbers: Sequence[int]) -> None:
        self._whole, self._numbers = whole, numbers
        self.schema, self.rows, self.original_rows = whole.schema, whole.rows, whole.original_rows
        self.marginals, self.warnings = whole.marginals, whole.warnings

    def __len__(self) -> int:
        return len(self._numbers)

    def table(self, number: int) -> pa.Table:
        return self._whole.table(self._numbers[number])

    def part(self, number: int, columns: Sequence[str]) -> pa.Table:
        return self._whole.part(self._numbers[number], columns)


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
        stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(1, number))))
        theta = self.posterior.draws[self.chosen[number]]
        return self.schema.decode(draw_rows(self.posterior.model, theta, self.rows, stream), stream)


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredDatasets(SyntheticDatasets):
    """Datasets read from a release's Parquet files when asked for."""

    paths: tuple[Path, ...]
    """One Parquet file per dataset."""
    schema: Schema
    """The public schema."""
    rows: int
    """Rows of each dataset."""
    original_rows: int
    """Rows of the confidential table; public."""
    marginals: tuple[Marginal, ...]
    """The marginals that were measured."""
    warnings: tuple[str, ...] = ()
    """What the posterior's verdict has against it."""

    def __len__(self) -> int:
        return len(self.paths)

    def table(self, number: int) -> pa.Table:
        """Read dataset `number`; its rows and columns must be those the release speaks of."""
        return self.part(number, self.schema.names)

    def part(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Read some columns of dataset `number`; the file must have the release's rows and columns."""
        path = self.paths[number]
        try:
            with pq.ParquetFile(path) as file:
                found, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
                sound = found == self.schema.names and rows == self.rows
                table = file.read(columns=list(columns)) if sound else None
        except (OSError, ValueError, pa.ArrowException):
            raise ReleaseError(f"Cannot read {path.name}. Run `noisewise verify` on the release.") from None
        if found != self.schema.names:
            raise ReleaseError(f"{path.name} does not have the schema's columns. Get a fresh copy of the release.")
        if table is None:
            raise ReleaseError(f"{path.name} does not hold {self.rows:,} rows. Get a fresh copy of the release.")
        arrays = [_declared(table[name], self.schema.column(name), path.name) for name in columns]
        return pa.table(arrays, names=list(columns))


def _declared(values: pa.ChunkedArray, column: Column, file: str) -> pa.ChunkedArray:
    """A column read from Parquet in the type it was drawn in: Parquet may forget levels, and those of integers."""
    wanted = column.released_type
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if kind != wanted:
        raise ReleaseError(
            f"Column {column.name!r} of {file} holds {kind} and the schema says {wanted}. Get a fresh copy."
        )
    if not isinstance(column, Categorical):
        return values
    levels = column.declared_values()
    if _has_levels(values, levels, column.ordered):
        return values
    codes = pc.index_in(values.cast(kind), value_set=levels).combine_chunks()
    if codes.null_count > values.null_count:
        raise ReleaseError(f"Column {column.name!r} of {file} holds a value that the schema does not have.")
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, levels, ordered=column.ordered)])


def _has_levels(values: pa.ChunkedArray, levels: pa.Array, ordered: bool) -> bool:
    wanted = pa.dictionary(pa.int32(), levels.type, ordered=ordered)
    return values.type == wanted and all(chunk.dictionary.equals(levels) for chunk in values.chunks)


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


def write_datasets(datasets: SyntheticDatasets, folder: Path, progress: Progress = silent) -> list[Path]:
    """Write each dataset to a Parquet file of its own, a few at a time, one per processor.

    Memory does not grow with the number of datasets, and the bytes do not depend on who drew which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digits = max(3, len(str(len(datasets) - 1)))
    paths = [folder / f"dataset-{number:0{digits}d}.parquet" for number in range(len(datasets))]
    with ThreadPoolExecutor(min(MAX_WORKERS, os.cpu_count() or 1)) as pool:
        try:
            written = pool.map(lambda number: _write(datasets, number, paths[number]), range(len(paths)))
            for done, _ in enumerate(written):
                progress("drawing datasets", done + 1, len(paths))
        except BaseException:
            pool.shutdown(cancel_futures=True)  # an interruption does not wait for what has not begun
            raise
    return paths


def _write(datasets: SyntheticDatasets, number: int, path: Path) -> None:
    pq.write_table(datasets.table(number), path, compression="zstd", use_dictionary=True)
