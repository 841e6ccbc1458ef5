"""Run an analysis on every synthetic dataset and pool it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisewise.analysis.estimates import Estimates, Estimator, check_estimates
from noisewise.analysis.pooled import Pooled
from noisewise.analysis.pooling import FullySynthetic, PooledEstimate, PoolingRule
from noisewise.analysis.rows import to_arrow
from noisewise.analysis.support import Support, support_of
from noisewise.errors import AnalysisError

SIZES = {"rows": "one synthetic dataset", "original_rows": "the confidential table"}


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
    check_datasets(datasets)
    _check_estimator(estimator)
    if not 0 <= max_left_out < 1:
        raise AnalysisError(f"max_left_out is {max_left_out}. Give a share of the datasets, from 0 to below 1.")
    support = support_of(datasets, estimator.rests_on, marginals, strict=strict)
    rows, original = sizes(datasets, original_rows)
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
    chosen = FullySynthetic() if rule is None else rule
    if not isinstance(chosen, PoolingRule):
        raise AnalysisError(f"The rule is {chosen!r}. Give an object, such as rule=FullySynthetic() or FewDatasets().")
    for name, number in (("rows", rows), ("original_rows", original_rows)):
        if number is not None and number < 1:
            raise AnalysisError(f"{name} is {number}. Give the number of rows of {SIZES[name]}.")
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


def check_datasets(datasets: Any) -> None:
    """Refuse what is not a list of at least two datasets."""
    if isinstance(datasets, str | bytes) or not isinstance(datasets, Sequence):
        raise AnalysisError(
            f"The datasets are a {type(datasets).__name__}. Give read_release(place).datasets(), what synthesize() "
            "returned, or a list of data frames."
        )
    if len(datasets) < 2:
        found = "is 1 dataset" if len(datasets) == 1 else "are no datasets"
        raise AnalysisError(
            f"There {found}. Pooling needs at least 2, better 100: the spread between datasets carries the privacy "
            "noise. One dataset alone gives intervals that are too short."
        )


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, Estimator):
        kind = type(estimator).__name__
        advice = "Custom(function)" if callable(estimator) else "glm('y ~ a + b', family='binomial')"
        raise AnalysisError(f"The analysis is a {kind}. Give an estimator, such as {advice}.")


def sizes(datasets: Sequence[Any], original_rows: int | None) -> tuple[int, int | None]:
    """Rows of one synthetic dataset and of the confidential table."""
    known = getattr(datasets, "rows", None)
    original = original_rows if original_rows is not None else getattr(datasets, "original_rows", None)
    if known is not None:
        return int(known), original
    rows = [len(to_arrow(dataset)) for dataset in datasets]
    return round(float(np.mean(rows))), original
