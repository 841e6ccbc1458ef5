"""Run an analysis on every synthetic dataset and pool it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisewise.analysis.estimates import Estimates, Estimator, check_estimates
from noisewise.analysis.pooled import Pooled
from noisewise.analysis.pooling import FullySynthetic, PooledEstimate, PoolingRule
from noisewise.analysis.rows import to_arrow
from noisewise.analysis.support import Support, check_support, require_support
from noisewise.errors import AnalysisError


def analyze(
    datasets: Sequence[Any],
    estimator: Estimator,
    *,
    rule: PoolingRule | None = None,
    original_rows: int | None = None,
    marginals: Sequence[Sequence[str]] | None = None,
    strict: bool = False,
    max_left_out: float = 0.1,
) -> Pooled:
    """Run `estimator` on each dataset and pool the results; the intervals are for the population.

    `datasets` is a release's `SyntheticDatasets`, or a list of data frames (then give `original_rows` and, for
    the support check, the measured `marginals`). `rule` is `FullySynthetic()` unless another is given. With
    `strict` an analysis of columns that were not measured together is refused. A term that cannot be
    estimated in more than the share `max_left_out` of the datasets is refused too.

        analyze(datasets, glm("income ~ age + race + gender", family="binomial")).summary()
    """
    if len(datasets) < 2:
        found = "is 1 dataset" if len(datasets) == 1 else "are no datasets"
        raise AnalysisError(
            f"There {found}. Pooling needs at least 2, better 100: the spread between datasets carries the privacy "
            "noise. One dataset alone gives intervals that are too short."
        )
    support = _support(datasets, estimator, marginals)
    if strict:
        _require(support)
    rows, original = _sizes(datasets, original_rows)
    estimates = estimator.fit(datasets)
    check_estimates(estimates, max_left_out)
    return pool(
        estimates,
        rule=rule,
        rows=rows,
        original_rows=original,
        support=support,
        warnings=tuple(getattr(datasets, "warnings", ())),
    )


def pool(
    estimates: Estimates,
    *,
    rule: PoolingRule | None = None,
    rows: int | None = None,
    original_rows: int | None = None,
    support: Support | None = None,
    warnings: tuple[str, ...] = (),
) -> Pooled:
    """Pool estimates that are already there, term by term, each over the datasets that have it."""
    chosen = rule or FullySynthetic()
    return Pooled(
        estimates=estimates,
        rule=chosen,
        pooled=tuple(_pool_term(estimates, j, chosen, rows, original_rows) for j in range(len(estimates.terms))),
        rows=rows,
        original_rows=original_rows,
        support=support,
        warnings=warnings,
    )


def _pool_term(
    estimates: Estimates, term: int, rule: PoolingRule, rows: int | None, original_rows: int | None
) -> PooledEstimate:
    used = estimates.used[:, term]
    values, variances = estimates.values[used, term], estimates.variances[used, term]
    try:
        return rule.pool(values, variances, rows=rows, original_rows=original_rows)
    except AnalysisError as error:
        raise AnalysisError(f"Term {estimates.terms[term]!r}: {error}") from None


def _sizes(datasets: Sequence[Any], original_rows: int | None) -> tuple[int, int | None]:
    """Rows of one synthetic dataset and of the confidential table."""
    known = getattr(datasets, "rows", None)
    original = original_rows if original_rows is not None else getattr(datasets, "original_rows", None)
    if original is not None and original < 1:
        raise AnalysisError(f"original_rows is {original}. Give the number of rows of the confidential table.")
    if known is not None:
        return int(known), original
    rows = [len(to_arrow(dataset)) for dataset in datasets]
    return round(float(np.mean(rows))), original


def _support(
    datasets: Sequence[Any], estimator: Estimator, marginals: Sequence[Sequence[str]] | None
) -> Support | None:
    measured = marginals if marginals is not None else getattr(datasets, "marginals", None)
    return check_support(estimator.formula, measured) if measured is not None and estimator.formula else None


def _require(support: Support | None) -> None:
    if support is None:
        raise AnalysisError(
            "strict needs to know which marginals were measured and which columns the analysis uses. "
            "Give marginals=, and a formula to the estimator."
        )
    require_support(support)
