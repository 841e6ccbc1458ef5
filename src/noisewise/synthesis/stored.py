"""Datasets read from Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisewise.errors import ReleaseError
from noisewise.schema import Categorical, Column, Schema
from noisewise.synthesis.series import SyntheticDatasets
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredDatasets(SyntheticDatasets):
    """Datasets read from a release's Parquet files when asked for."""

    paths: tuple[Path, ...]
    """One Parquet file per dataset, or one folder of them, whose files in the order of their names are the dataset."""
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
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        try:
            found, rows, tables = [], 0, []
            for name in files:
                with pq.ParquetFile(name) as file:
                    found.append(tuple(file.schema_arrow.names))
                    rows += file.metadata.num_rows
                    sound = found[-1] == self.schema.names and rows <= self.rows
                    tables += [file.read(columns=list(columns))] if sound else []
        except (OSError, ValueError, pa.ArrowException):
            raise ReleaseError(f"Cannot read {path.name}. Run `noisewise verify` on the release.") from None
        if any(names != self.schema.names for names in found):
            raise ReleaseError(f"{path.name} does not have the schema's columns. Get a fresh copy of the release.")
        if rows != self.rows:
            raise ReleaseError(f"{path.name} does not hold {self.rows:,} rows. Get a fresh copy of the release.")
        table = pa.concat_tables(tables)
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
