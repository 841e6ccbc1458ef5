"""Datasets as distinct rows with counts: why a hundred fits cost little more than one.

Synthetic columns are discrete, so the rows that matter to a formula repeat a great deal. The datasets are
reduced to one table of the rows that occur anywhere, and a matrix that counts how often each occurs in
each dataset; a likelihood is then a sum over that table. Where the rows do not repeat (a continuous
column), every dataset keeps a table of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float
from numpy import ndarray

from noisewise.errors import AnalysisError, did_you_mean
from noisewise.synthesis import SparkDatasets, SyntheticDatasets

if TYPE_CHECKING:
    import pandas as pd

MAX_SHARED_CELLS = 20_000_000
"""Largest (datasets × distinct rows) matrix of counts; above it each dataset keeps its own rows."""

_COUNT, _DATASET = "__count__", "__dataset__"


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedRows:
    """Distinct rows, and how often each occurs in each of the datasets it describes."""

    frame: "pd.DataFrame"
    """The distinct rows, without missing values; categorical columns have the levels of all datasets."""
    counts: Float[ndarray, "datasets distinct"]
    """How often each row occurs in each dataset."""
    missing: tuple[int, ...]
    """Rows of each dataset that were set aside because a variable is missing."""


def weighted_rows(datasets: Sequence[Any], columns: Sequence[str]) -> list[WeightedRows]:
    """Distinct rows of the named columns: one shared table for all datasets, or one for each."""
    if len(datasets) == 0:
        raise AnalysisError("There are no datasets. Give at least 2 synthetic datasets.")
    if not columns:
        raise AnalysisError("The analysis names no column. Name at least one.")
    distinct_of = partial(_distinct, columns=tuple(columns))
    if isinstance(datasets, SparkDatasets) and set(columns) <= set(datasets.schema.names):
        parts = datasets.map(distinct_of, columns)
    else:
        parts = [distinct_of(dataset, number) for number, dataset in enumerate(_each(datasets, columns))]
    stacked = pa.concat_tables(parts, promote_options="permissive").unify_dictionaries()
    missing = _missing_rows(stacked, columns, len(parts))
    frame = _drop_missing(stacked, columns).to_pandas()
    frame = _with_shared_levels(frame, columns)
    numbers, counts = frame.pop(_DATASET).to_numpy(), frame.pop(_COUNT).to_numpy().astype(float)
    groups = frame.groupby(list(columns), sort=True, observed=True).ngroup().to_numpy()
    distinct = int(groups.max()) + 1 if len(groups) else 0
    if distinct == 0:
        raise AnalysisError(f"No dataset has a row without missing values in {_listed(columns)}. Use other columns.")
    if len(parts) == 1 or len(parts) * distinct <= MAX_SHARED_CELLS:
        return [_shared(frame, groups, numbers, counts, missing)]
    return [_own(frame, numbers == i, counts, missing[i]) for i in range(len(parts))]


def expand(rows: WeightedRows) -> list[WeightedRows]:
    """One table per dataset with every row written out, for formulas that look at the column as a whole."""
    return [
        WeightedRows(
            frame=(
                frame := rows.frame.loc[np.repeat(np.arange(len(rows.frame)), counts.astype(int))].reset_index(
                    drop=True
                )
            ),
            counts=np.ones((1, len(frame))),
            missing=(missing,),
        )
        for counts, missing in zip(rows.counts, rows.missing, strict=True)
    ]


def to_arrow(dataset: Any) -> pa.Table:
    """Any data frame narwhals knows, as an Arrow table."""
    if isinstance(dataset, pa.Table):
        return dataset
    try:
        frame = nw.from_native(dataset, eager_only=True)
    except TypeError:
        raise AnalysisError(
            f"A dataset is a {type(dataset).__name__}, not a data frame. Give pandas, Polars or Arrow tables."
        ) from None
    return frame.to_arrow()


def _each(datasets: Sequence[Any], columns: Sequence[str]) -> Iterator[Any]:
    """The datasets one after the other; of a release's files only the columns that are needed are read."""
    if isinstance(datasets, SyntheticDatasets) and set(columns) <= set(datasets.schema.names):
        return (datasets.part(i, columns) for i in range(len(datasets)))
    return (datasets[i] for i in range(len(datasets)))


def _distinct(dataset: Any, number: int, columns: tuple[str, ...]) -> pa.Table:
    table = to_arrow(dataset)
    for name in columns:
        if name not in table.column_names:
            raise AnalysisError(f"Column {name!r} is not in dataset {number}. {did_you_mean(name, table.column_names)}")
    plain = pa.table({name: _plain(table[name], name) for name in columns}).unify_dictionaries()
    grouped = plain.group_by(list(columns), use_threads=False).aggregate([([], "count_all")])
    size = len(grouped)
    return grouped.rename_columns([*columns, _COUNT]).append_column(_DATASET, pa.array(np.full(size, number)))


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Text, categories, numbers or booleans, each in one Arrow type, so that datasets can be stacked."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        value = pa.int64() if pa.types.is_integer(kind.value_type) else pa.string()
        return column.cast(pa.dictionary(pa.int32(), value, ordered=kind.ordered))
    if pa.types.is_boolean(kind):
        return column
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        number = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(number), pa.scalar(None, pa.float64()), number)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return column.cast(pa.string())
    raise AnalysisError(f"Column {name!r} is of type {kind}. Convert it to numbers, booleans, text or categories.")


def _missing_rows(stacked: pa.Table, columns: Sequence[str], datasets: int) -> tuple[int, ...]:
    null = _any_null(stacked, columns)
    numbers = stacked[_DATASET].to_numpy()[null]
    return tuple(int(n) for n in np.bincount(numbers, stacked[_COUNT].to_numpy()[null], minlength=datasets))


def _drop_missing(stacked: pa.Table, columns: Sequence[str]) -> pa.Table:
    null = _any_null(stacked, columns)
    return stacked.filter(pa.array(~null)) if null.any() else stacked


def _any_null(stacked: pa.Table, columns: Sequence[str]) -> ndarray:
    null = np.zeros(len(stacked), bool)
    for name in columns:
        if stacked[name].null_count:
            null |= stacked[name].is_null().to_numpy()
    return null


def _with_shared_levels(frame: "pd.DataFrame", columns: Sequence[str]) -> "pd.DataFrame":
    """Text becomes categories with the levels of all datasets, so that each gives the same columns."""
    import pandas as pd

    text = {
        name: pd.Categorical(frame[name], categories=sorted(frame[name].unique()))
        for name in columns
        if not isinstance(frame[name].dtype, pd.CategoricalDtype) and not pd.api.types.is_numeric_dtype(frame[name])
    }
    return frame.assign(**text)


def _shared(
    frame: "pd.DataFrame", groups: ndarray, numbers: ndarray, counts: ndarray, missing: tuple[int, ...]
) -> WeightedRows:
    _, first = np.unique(groups, return_index=True)
    table = np.zeros((len(missing), len(first)))
    np.add.at(table, (numbers, groups), counts)
    return WeightedRows(frame=frame.iloc[first].reset_index(drop=True), counts=table, missing=missing)


def _own(frame: "pd.DataFrame", here: ndarray, counts: ndarray, missing: int) -> WeightedRows:
    return WeightedRows(frame=frame[here].reset_index(drop=True), counts=counts[here][None], missing=(missing,))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
