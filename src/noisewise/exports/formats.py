"""File formats: how each names columns, keeps levels, and carries its note."""

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyarrow import parquet as pq

from noisewise.errors import AnalysisError
from noisewise.exports.notes import SHORT
from noisewise.schema import Categorical, Schema

if TYPE_CHECKING:
    import pandas as pd


class Format(ABC):
    """A file format that datasets can be exported to."""

    name: ClassVar[str]
    """What the command line calls it."""
    suffix: ClassVar[str]
    """Suffix of its files."""
    reading: ClassVar[str]
    """How to read a file, in one or two lines."""
    index: ClassVar[tuple[str, str]] = (".imp", ".id")
    """Columns of a stacked file: the dataset's number and the row's, both from 1, as its users expect them."""

    @abstractmethod
    def write(self, table: pa.Table, schema: Schema, path: Path, note: str) -> None:
        """Write one table; columns that the schema does not have are written as they are."""


@dataclass(frozen=True, kw_only=True)
class Csv(Format):
    """Text with labels, as every software reads it; a missing value is an empty cell."""

    name = "csv"
    suffix = ".csv"
    reading = "Levels and their order are in levels.csv. In R, docs/pool.R of noisewise fits a glm to all and pools."

    def write(self, table: pa.Table, schema: Schema, path: Path, note: str) -> None:
        plain = [column.cast(_value_type(column.type)) for column in table.columns]
        csv.write_csv(pa.table(plain, names=table.column_names), path)


@dataclass(frozen=True, kw_only=True)
class Parquet(Format):
    """Columnar files with categories; the note is in the file's metadata under `noisewise`."""

    name = "parquet"
    suffix = ".parquet"
    reading = "In Python: pandas.read_parquet(file); in R: arrow::read_parquet(file). Categories keep their levels."

    def write(self, table: pa.Table, schema: Schema, path: Path, note: str) -> None:
        metadata = {**(table.schema.metadata or {}), b"noisewise": note.encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")


class _Labelled(Format):
    """Formats in which a category is a number with a value label."""

    longest: ClassVar[int]
    """Most characters of a column's name."""

    def write(self, table: pa.Table, schema: Schema, path: Path, note: str) -> None:
        names = dict(zip(table.column_names, self.column_names(table.column_names), strict=True))
        labels = {names[name]: _value_labels(schema, name) for name in table.column_names if name in schema.names}
        self._save(
            _numbered(table, schema).rename(columns=names),
            path,
            [_describe(schema, name) for name in table.column_names],
            {name: values for name, values in labels.items() if values},
            note,
        )

    @abstractmethod
    def _save(
        self, frame: "pd.DataFrame", path: Path, columns: list[str], labels: dict[str, dict[int, str]], note: str
    ) -> None:
        """Write numbers with labels."""

    def column_names(self, names: Sequence[str]) -> list[str]:
        """Names the software accepts, in the same order, no two alike; the original is the column's label."""
        made: list[str] = []
        for name in names:
            plain = re.sub(r"\W", "_", name, flags=re.ASCII)[: self.longest]
            plain = plain if re.match(r"[A-Za-z_]", plain) else f"v{plain}"[: self.longest]
            number = 1
            candidate = plain
            while candidate.lower() in {other.lower() for other in made}:
                number += 1
                candidate = f"{plain[: self.longest - len(str(number)) - 1]}_{number}"
            made.append(candidate)
        return made


@dataclass(frozen=True, kw_only=True)
class Stata(_Labelled):
    """Stata files with value labels; needs the extra `export`."""

    name = "stata"
    suffix = ".dta"
    reading = "In Stata: use file. Categories are numbers with value labels; write i.column in models."
    index = ("_mj", "_mi")
    longest = 32

    def _save(
        self, frame: "pd.DataFrame", path: Path, columns: list[str], labels: dict[str, dict[int, str]], note: str
    ) -> None:
        _pyreadstat().write_dta(
            frame,
            str(path),
            file_label=SHORT,
            column_labels=[label[:80] for label in columns],
            variable_value_labels=labels,
            version=15,
        )


@dataclass(frozen=True, kw_only=True)
class Spss(_Labelled):
    """SPSS files with value labels; needs the extra `export`."""

    name = "spss"
    suffix = ".sav"
    reading = "In SPSS: GET FILE. Categories are numbers with value labels, of nominal or ordinal measure."
    index = ("Imputation_", "Id_")
    longest = 60

    def _save(
        self, frame: "pd.DataFrame", path: Path, columns: list[str], labels: dict[str, dict[int, str]], note: str
    ) -> None:
        _pyreadstat().write_sav(
            frame,
            str(path),
            file_label=SHORT,
            column_labels=columns,
            variable_value_labels={
                name: {number: label.encode()[:120].decode(errors="ignore") for number, label in values.items()}
                for name, values in labels.items()
            },
            note=_short_lines(note),
            variable_measure={name: "nominal" if name in labels else "scale" for name in frame.columns},
        )


FORMATS: dict[str, Format] = {one.name: one for one in (Csv(), Parquet(), Stata(), Spss())}
"""Formats by the name the command line gives them."""


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _value_labels(schema: Schema, name: str) -> dict[int, str]:
    """Numbers and labels of a column's levels; integer levels are their own numbers."""
    column = schema.column(name)
    if column.type == "numeric":
        return {}
    if isinstance(column, Categorical) and column.integer_levels:
        return {int(level): str(level) for level in column.levels}
    first = 0 if column.type == "boolean" else 1
    return dict(enumerate(column.declared_labels, start=first))


def _numbered(table: pa.Table, schema: Schema) -> "pd.DataFrame":
    """Every column as numbers; a missing value is NaN, which these formats hold as system-missing."""
    import pandas as pd

    columns = {}
    for name in table.column_names:
        values = table[name]
        if pa.types.is_dictionary(values.type):
            values = _level_numbers(values.combine_chunks())
        missing = values.null_count > 0
        kind = np.float64 if missing or pa.types.is_floating(values.type) else np.int64
        columns[name] = np.asarray(values.cast(pa.float64())).astype(kind)
    return pd.DataFrame(columns)


def _level_numbers(values: Any) -> pa.Array:
    array = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_integer(array.type.value_type):
        return array.cast(pa.int64())
    return pc.add(array.indices.cast(pa.int64()), 1)


def _describe(schema: Schema, name: str) -> str:
    if name not in schema.names:
        return {True: "Number of the dataset", False: "Number of the row"}[name in ("_mj", "Imputation_", ".imp")]
    description = schema.column(name).description
    return f"{name}: {description}" if description else name


def _short_lines(note: str) -> list[str]:
    """The note in lines of at most 80 bytes, which is what SPSS holds; only spaces are lost by the wrapping."""
    plain = note.translate({ord("×"): "x", ord("…"): "...", ord("±"): "+-"}).encode("ascii", "replace").decode()
    return [part for line in plain.splitlines() for part in textwrap.wrap(line, 78, drop_whitespace=False) or [""]]


def _pyreadstat() -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise AnalysisError(
            "Files for Stata and SPSS need one package more. Install it: pip install 'noisewise[export]'"
        ) from None
    return pyreadstat
