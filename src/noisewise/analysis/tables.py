"""Pooling a table of results: for analyses that were run in R, Stata, SAS or SPSS, one dataset at a time."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from noisewise.analysis.analyze import pool
from noisewise.analysis.estimates import Estimates, check_estimates
from noisewise.analysis.pooled import Pooled
from noisewise.analysis.pooling import PoolingRule
from noisewise.errors import AnalysisError, did_you_mean

NAMES = (
    ("dataset", ".imp", "_mj", "imputation_", "_imputation_"),
    ("term", "parm", "parameter"),
    ("estimate",),
    ("std_error", "std.error", "std. error", "stderr", "se"),
)
"""Names under which the four columns are found, in capitals or not: ours first, then those of R, Stata, SPSS, SAS."""


def pool_table(
    table: Any,
    *,
    rule: PoolingRule | None = None,
    rows: int | None = None,
    original_rows: int | None = None,
    datasets: int | None = None,
    max_left_out: float = 0.1,
    alpha: float = 0.05,
) -> Any:
    """Pool a tidy table (dataset, term, estimate, std_error) into a tidy table with one row per term.

    The result has broom's column names (term, estimate, std.error, statistic, df, p.value, conf.low, conf.high) and
    what the pooling adds. Any data frame goes in, and the same kind comes out. `rows` and `original_rows` are those
    of one synthetic dataset and of the confidential table; the fallback of the default rule needs them. `datasets`
    says how many were analysed, so that those without any result are counted.
    """
    pooled = pool_results(
        table, rule=rule, rows=rows, original_rows=original_rows, datasets=datasets, max_left_out=max_left_out
    )
    tidy = nw.from_native(pa.Table.from_pandas(pooled.summary_frame(alpha), preserve_index=False), eager_only=True)
    backend = nw.from_native(table, eager_only=True).implementation
    return nw.from_dict(tidy.to_dict(as_series=False), backend=backend).to_native()


def pool_results(
    table: Any,
    *,
    rule: PoolingRule | None = None,
    rows: int | None = None,
    original_rows: int | None = None,
    datasets: int | None = None,
    max_left_out: float = 0.1,
) -> Pooled:
    """Pool a tidy table as `pool_table` does, and return the result as an object: without covariances."""
    estimates = _with_absent(read_results(table), datasets)
    if len(estimates.used) < 2:
        raise AnalysisError(
            "The table holds results of one dataset only. Pooling needs those of at least 2, better 100, told apart by "
            "the column 'dataset'."
        )
    check_estimates(estimates, max_left_out)
    return pool(estimates, rule=rule, rows=rows, original_rows=original_rows)


def read_results(table: Any) -> Estimates:
    """Results of all datasets from a tidy table; empty or non-finite ones are left out and counted."""
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise AnalysisError(
            f"The table is a {type(table).__name__}, not a data frame. Give pandas, Polars or Arrow."
        ) from None
    names = _columns(frame.columns)
    datasets, numbers = _codes(frame[names["dataset"]].to_list(), names["dataset"])
    terms, positions = _codes(frame[names["term"]].to_list(), names["term"])
    _refuse_repeats(datasets, terms, numbers, positions)
    estimates = _numbers(frame[names["estimate"]].to_list(), names["estimate"])
    errors = _numbers(frame[names["std_error"]].to_list(), names["std_error"])
    if (errors < 0).any():
        raise AnalysisError(f"Column {names['std_error']!r} has a negative value. Give standard errors, not estimates.")
    return _estimates(datasets, [str(term) for term in terms], numbers, positions, estimates, errors)


def _with_absent(estimates: Estimates, datasets: int | None) -> Estimates:
    """Count the datasets that have no row in the table."""
    found = len(estimates.used)
    absent = 0 if datasets is None else datasets - found
    if absent < 0:
        raise AnalysisError(
            f"The table holds results of {found} datasets, more than the {datasets} there are said to be."
        )
    if absent == 0:
        return estimates
    return replace(
        estimates,
        values=np.pad(estimates.values, ((0, absent), (0, 0))),
        covariances=np.pad(estimates.covariances, ((0, absent), (0, 0), (0, 0))),
        used=np.pad(estimates.used, ((0, absent), (0, 0))),
        left_out={**estimates.left_out, "the dataset is not in the table": absent},
    )


def _estimates(
    datasets: list[Any], terms: list[str], numbers: Any, positions: Any, estimates: Any, errors: Any
) -> Estimates:
    values = np.zeros((len(datasets), len(terms)))
    variances, present = np.zeros_like(values), np.zeros(values.shape, bool)
    used = present.copy()
    finite = np.isfinite(estimates) & np.isfinite(errors)
    present[numbers, positions] = True
    used[numbers[finite], positions[finite]] = True
    values[numbers[finite], positions[finite]] = estimates[finite]
    variances[numbers[finite], positions[finite]] = errors[finite] ** 2
    reasons = {
        "a term is not in the table": int((~present).any(axis=1).sum()),
        "an estimate or standard error is empty or not finite": int((present & ~used).any(axis=1).sum()),
    }
    return Estimates(
        terms=tuple(terms),
        values=values,
        covariances=np.stack([np.diag(one) for one in variances]),
        used=used,
        left_out={reason: count for reason, count in reasons.items() if count},
        notes=("Pooled from a table of estimates and standard errors: covariances between terms are unknown.",),
        title="Results from a table",
        covariances_known=False,
    )


def _columns(found: Sequence[str]) -> dict[str, str]:
    """The table's names for the four columns."""
    return {accepted[0]: _one_of(accepted, found) for accepted in NAMES}


def _one_of(accepted: Sequence[str], found: Sequence[str]) -> str:
    by_lower_case = {name.lower(): name for name in reversed(found)}
    for name in accepted:
        if name in by_lower_case:
            return by_lower_case[name]
    raise AnalysisError(
        f"The table has no column {accepted[0]!r}. {did_you_mean(accepted[0], found)} "
        "It needs dataset, term, estimate and std_error."
    )


def _codes(values: list[Any], column: str) -> tuple[list[Any], Any]:
    """Distinct values in order of appearance, and the position of each row's value among them."""
    if any(value is None or (isinstance(value, float) and math.isnan(value)) for value in values):
        raise AnalysisError(f"Column {column!r} has an empty cell. Fill it or remove the row.")
    distinct = list(dict.fromkeys(values))
    where = {value: position for position, value in enumerate(distinct)}
    return distinct, np.array([where[value] for value in values], int)


def _numbers(values: list[Any], column: str) -> Any:
    try:
        return np.array([np.nan if value is None else float(value) for value in values], float)
    except (TypeError, ValueError):
        raise AnalysisError(f"Column {column!r} has a value that is not a number. Write 1.5, with a point.") from None


def _refuse_repeats(datasets: list[Any], terms: list[Any], numbers: Any, positions: Any) -> None:
    pairs, counts = np.unique(np.stack([numbers, positions]), axis=1, return_counts=True)
    if (counts > 1).any():
        dataset, term = pairs[:, np.argmax(counts > 1)]
        raise AnalysisError(
            f"The table has the term {terms[term]!r} more than once for dataset {datasets[dataset]!r}. Give each term "
            "of each dataset one row; name the levels of an outcome in the term."
        )
