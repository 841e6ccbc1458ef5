"""Synthetic datasets: one posterior draw per dataset, rows independent given the draw.

Nothing here needs more than NumPy and PyArrow, so that an analyst can draw further datasets from a release. Dataset
number i is drawn from a random stream of its own, derived from the seed and i: the same bytes come out
in another process, for any one dataset alone, and whatever the order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float, Integer

from noisewise.errors import FitError, ReleaseError
from noisewise.model.maxent import MaxEnt
from noisewise.posterior.result import Posterior
from noisewise.progress import Progress, silent
from noisewise.schema import Categorical, Schema
from noisewise.workload import Marginal


class SyntheticDatasets(Sequence[pa.Table]):
    """m synthetic datasets, each an Arrow table that is made (or read) only when it is asked for.

    Categorical columns come dictionary-encoded with all of the schema's levels, numeric ones as the
    representative value of their bin, booleans as booleans, missing values as nulls.
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
    def __getitem__(self, number: slice) -> list[pa.Table]: ...
    def __getitem__(self, number: int | slice) -> pa.Table | list[pa.Table]:
        if isinstance(number, slice):
            return [self.table(i) for i in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"There is no dataset {number}: they are numbered 0 to {len(self) - 1}.")
        return self.table(number % len(self))

    def __iter__(self) -> Iterator[pa.Table]:
        return (self.table(i) for i in range(len(self)))


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
        return self.schema.decode(draw_rows(self.posterior.model, theta, self.rows, stream))


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredDatasets(SyntheticDatasets):
    """Datasets read from a release's Parquet files when asked for."""

    paths: tuple[Path, ...]
    """One Parquet file per dataset."""
    schema: Schema
    """The public schema."""
    original_rows: int
    """Rows of the confidential table; public."""
    marginals: tuple[Marginal, ...]
    """The marginals that were measured."""
    warnings: tuple[str, ...] = ()
    """What the posterior's verdict has against it."""

    @cached_property
    def rows(self) -> int:  # type: ignore[override]
        """Rows of each dataset."""
        return int(pq.read_metadata(self.paths[0]).num_rows)

    def __len__(self) -> int:
        return len(self.paths)

    def table(self, number: int) -> pa.Table:
        """Read dataset `number`; its columns must be the schema's."""
        return self.part(number, self.schema.names)

    def part(self, number: int, columns: Sequence[str]) -> pa.Table:
        """Read some columns of dataset `number`; the file must have the schema's."""
        path = self.paths[number]
        try:
            with pq.ParquetFile(path) as file:
                found = tuple(file.schema_arrow.names)
                table = file.read(columns=list(columns)) if found == self.schema.names else None
        except (OSError, pa.ArrowException):
            raise ReleaseError(f"Cannot read {path.name}. Run `noisewise verify` on the release.") from None
        if table is None:
            raise ReleaseError(f"{path.name} does not have the schema's columns. Get a fresh copy.")
        return _with_levels(table.select(list(columns)), self.schema, path.name)


def _with_levels(table: pa.Table, schema: Schema, name: str) -> pa.Table:
    """Categories with all of the schema's levels: Parquet forgets those of integers, and may forget unused ones."""
    for position, column in enumerate(map(schema.column, table.column_names)):
        if isinstance(column, Categorical) and not _has_levels(table.column(position), column):
            levels, values = column.declared_values(), table.column(position)
            codes = pc.index_in(values.cast(levels.type), levels)
            if codes.null_count > values.null_count:
                raise ReleaseError(f"{name} has a value of {column.name!r} that the schema does not. Get a fresh copy.")
            coded = pa.DictionaryArray.from_arrays(codes.combine_chunks(), levels, ordered=column.ordered)
            table = table.set_column(position, column.name, coded)
    return table


def _has_levels(values: pa.ChunkedArray, column: Categorical) -> bool:
    levels = column.declared_values()
    wanted = pa.dictionary(pa.int32(), levels.type, ordered=column.ordered)
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
            "or pass allow_untrusted=True to go on regardless."
        )
    if datasets < 1 or rows < 1:
        raise FitError(f"datasets={datasets} and rows={rows} must both be at least 1.")
    if datasets > available:
        raise FitError(
            f"{datasets} datasets need as many posterior draws and there are {available}. "
            "Ask for fewer, or fit with more."
        )
    chooser = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0,))))
    chosen = tuple(int(i) for i in chooser.permutation(available)[:datasets])
    return DrawnDatasets(posterior=posterior, rows=rows, seed=seed, chosen=chosen)


def draw_rows(
    model: MaxEnt, theta: Float[np.ndarray, " parameters"], rows: int, stream: np.random.Generator
) -> Integer[np.ndarray, "rows columns"]:
    """Independent rows of level codes from the model, clique by clique down the junction tree."""
    tree = model.tree
    log_conditionals, _ = model.log_conditionals(theta)
    codes = np.zeros((rows, len(tree.sizes)), np.int32, order="F")
    for i, log_conditional in enumerate(log_conditionals):
        separator, residual = tree.separators[i], tree.residuals[i]
        axes = [tree.cliques[i].index(c) for c in (*separator, *residual)]
        ordered = np.transpose(np.exp(log_conditional), axes).reshape(_size(tree.shape(separator)), -1)
        given = _ravel(codes, separator, tree.shape(separator))
        drawn = _draw(ordered, given, stream.random(rows))
        for column, values in zip(residual, np.unravel_index(drawn, tree.shape(residual)), strict=True):
            codes[:, column] = values
    return codes


def _draw(
    conditionals: Float[np.ndarray, "given values"],
    given: Integer[np.ndarray, " rows"],
    uniforms: Float[np.ndarray, " rows"],
) -> Integer[np.ndarray, " rows"]:
    """Invert each row's conditional distribution function by one binary search over all of them at once.

    Distribution function g is shifted by g, so that the functions follow each other and g + u falls into its own.
    """
    count, size = conditionals.shape
    cumulative = np.cumsum(conditionals, axis=1)
    cumulative /= cumulative[:, -1:]
    shifted = (cumulative + np.arange(count)[:, None]).reshape(-1)
    position = np.searchsorted(shifted, given + uniforms, side="right")
    return np.minimum(position - given * size, size - 1)


def _ravel(codes: np.ndarray, columns: tuple[int, ...], shape: tuple[int, ...]) -> Integer[np.ndarray, " rows"]:
    flat = np.zeros(len(codes), np.int64)
    for column, size in zip(columns, shape, strict=True):
        flat = flat * size + codes[:, column]
    return flat


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def write_datasets(datasets: SyntheticDatasets, folder: Path, progress: Progress = silent) -> list[Path]:
    """Write each dataset to a Parquet file of its own, one in memory at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = max(3, len(str(len(datasets) - 1)))
    paths = []
    for number in range(len(datasets)):
        progress("drawing datasets", number, len(datasets))
        path = folder / f"dataset-{number:0{digits}d}.parquet"
        pq.write_table(datasets.table(number), path, compression="zstd", use_dictionary=True)
        paths.append(path)
    progress("drawing datasets", len(datasets), len(datasets))
    return paths
