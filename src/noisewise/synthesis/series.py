"""What a series of synthetic datasets is, wherever they are."""

from collections.abc import Iterator, Sequence
from typing import overload

import pyarrow as pa

from noisewise.schema import Schema
from noisewise.workload import Marginal

PARTITION_ROWS = 1 << 20
"""Rows of a partition, the last one of a dataset excepted. Another number would give other rows."""


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

    @property
    def partition_count(self) -> int:
        """How many partitions each dataset comes in."""
        return 1

    def partitions(self, number: int, which: range) -> Iterator[pa.Table]:
        """Some of the partitions of dataset `number`, one after the other: what bounds the memory of writing."""
        return (self.table(number) for _ in which)

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

    @property
    def partition_count(self) -> int:
        return self._whole.partition_count

    def partitions(self, number: int, which: range) -> Iterator[pa.Table]:
        return self._whole.partitions(self._numbers[number], which)
