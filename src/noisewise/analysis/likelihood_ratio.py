"""Likelihood-ratio tests on fully synthetic data: nested regressions, and independence in a table.

Source: Reiter (2005), Journal of Statistical Planning and Inference 131:365-377, after Meng & Rubin (1992).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.analyze import check_datasets, sizes
from noisewise.analysis.families import family_of
from noisewise.analysis.formulas import Design, codes_of, designs, missing_note, parse
from noisewise.analysis.glm import Glm, problem_of, with_weights
from noisewise.analysis.irls import WITHOUT_SCALE, Problem, fit_many
from noisewise.analysis.joint_tests import JointTest, reiter_likelihood_ratio
from noisewise.analysis.rows import WeightedRows, weighted_rows
from noisewise.analysis.support import UNKNOWN, Support, support_of
from noisewise.errors import AnalysisError


def likelihood_ratio_test(
    datasets: Sequence[Any],
    full: Glm,
    null: Glm,
    *,
    original_rows: int | None = None,
    marginals: Sequence[Sequence[str]] | None = None,
    strict: bool = False,
) -> JointTest:
    """Test a generalized linear model against a smaller one that is nested in it.

    likelihood_ratio_test(datasets, logit("income ~ age + race"), logit("income ~ age")).

    For families without a scale (binomial, Poisson, negative binomial) and the Gaussian, whose scale is estimated
    by maximum likelihood. Every coefficient must be finite in every dataset; otherwise use `pooled.wald_test`.
    `marginals` and `strict` are those of `analyze`.
    """
    check_datasets(datasets)
    support = support_of(datasets, full.rests_on, marginals, strict=strict)
    family = _family(full, null)
    small, large = parse(null.formula), parse(full.formula)
    columns = dict.fromkeys([*with_weights(large, full.weights), *with_weights(small, null.weights)])
    rows = weighted_rows(datasets, tuple(columns))  # one set of complete rows for both
    (small_designs, *_), (large_designs, *_) = (designs(parsed, rows, full.weights) for parsed in (small, large))
    constraints = _constraints(small_designs, large_designs)
    own_null, mean_null = _losses(small_designs, family)
    own_full, mean_full = _losses(large_designs, family)
    size, original = sizes(datasets, original_rows)
    test = reiter_likelihood_ratio(
        own_null - own_full, mean_null - mean_full, constraints, rows=size, original_rows=original
    )
    return replace(test, notes=_notes(datasets, support, rows))


def independence_test(
    datasets: Sequence[Any],
    first: str,
    second: str,
    *,
    original_rows: int | None = None,
    marginals: Sequence[Sequence[str]] | None = None,
    strict: bool = False,
) -> JointTest:
    """Test whether two categorical columns are independent: the pooled G² (likelihood-ratio χ²) of their table.

    The parameters that are averaged over the datasets are the shares of the cells. Levels that are empty in all
    datasets are left out of the degrees of freedom. `marginals` and `strict` are those of `analyze`.
    """
    check_datasets(datasets)
    support = support_of(datasets, f"`{first}` + `{second}`", marginals, strict=strict)
    rows = weighted_rows(datasets, (first, second))
    tables = np.concatenate([_tables(part.frame, part.counts, first, second) for part in rows])
    tables = tables[:, tables.any(axis=(0, 2))][:, :, tables.any(axis=(0, 1))]
    if min(tables.shape[1:]) < 2:
        raise AnalysisError(f"One of {first!r} and {second!r} has a single level. There is nothing to test.")
    size, original = sizes(datasets, original_rows)
    test = g_square_test(tables, rows=size, original_rows=original)
    return replace(test, notes=_notes(datasets, support, rows))


def g_square_test(
    tables: Float[ndarray, "datasets rows columns"], *, rows: int | None = None, original_rows: int | None = None
) -> JointTest:
    """The likelihood-ratio test of independence from each dataset's table of counts."""
    shares = tables / tables.sum(axis=(1, 2), keepdims=True)
    mean = np.broadcast_to(shares.mean(axis=0), shares.shape)
    return reiter_likelihood_ratio(
        _g_square(tables, shares),
        _g_square(tables, mean),
        (tables.shape[1] - 1) * (tables.shape[2] - 1),
        rows=rows,
        original_rows=original_rows,
    )


def _notes(datasets: Sequence[Any], support: Support | None, rows: list[WeightedRows]) -> tuple[str, ...]:
    warnings = [f"Warning: {warning}" for warning in getattr(datasets, "warnings", ())]
    return (*warnings, *((UNKNOWN,) if support is None else support.sentences), *missing_note(rows))


def _family(full: Glm, null: Glm) -> Any:
    first, second = family_of(full.family), family_of(null.family)
    if type(first) is not type(second) or type(first.link) is not type(second.link) or full.weights != null.weights:
        raise AnalysisError(
            "The two models differ in more than their terms. Use one family, link and column of weights."
        )
    if full.remedy is not None or null.remedy is not None:
        raise AnalysisError("A likelihood ratio needs maximum likelihood: leave out the remedies, or use wald_test.")
    if type(first).__name__ not in (*WITHOUT_SCALE, "Gaussian"):
        raise AnalysisError(
            f"The {type(first).__name__} family has a scale: there is no likelihood ratio for it here. Use wald_test."
        )
    return first


def _constraints(small: list[Design], large: list[Design]) -> int:
    """How many coefficients the small model sets to zero; models that are not nested are refused."""
    inner, outer = small[0].matrix, large[0].matrix
    rank = np.linalg.matrix_rank(outer)
    if np.linalg.matrix_rank(np.hstack([inner, outer])) > rank:
        raise AnalysisError(
            "The smaller model is not nested in the larger one: it has terms that the larger one lacks."
        )
    constraints = int(rank - np.linalg.matrix_rank(inner))
    if constraints < 1:
        raise AnalysisError("The two models are the same. Leave a term out of the smaller one.")
    return constraints


def _losses(made: list[Design], family: Any) -> tuple[Float[ndarray, " datasets"], Float[ndarray, " datasets"]]:
    """Minus twice the log-likelihood of each dataset, at its own estimates and at their average over datasets."""
    problems = [problem_of(design, family) for design in made]
    fitted = [fit_many(problem) for problem in problems]
    for fits in fitted:
        if not (fits.estimable & fits.finite).all():
            raise AnalysisError(
                "A coefficient is undetermined or infinite in some dataset, so that there is no likelihood ratio. Use "
                "pooled.wald_test, or merge rare levels."
            )
    values = np.concatenate([fits.values for fits in fitted])
    scales = np.concatenate(
        [_own_scale(problem, fits.deviance) for problem, fits in zip(problems, fitted, strict=True)]
    )
    starts = np.cumsum([0, *(len(problem.rows) for problem in problems)])
    own, at_mean = [], []
    for problem, start, stop in zip(problems, starts, starts[1:], strict=False):
        own.append(_loss(problem, values[start:stop], scales[start:stop]))
        mean = np.broadcast_to(values.mean(axis=0), (stop - start, values.shape[1]))
        at_mean.append(_loss(problem, mean, np.full(stop - start, scales.mean())))
    return np.concatenate(own), np.concatenate(at_mean)


def _own_scale(problem: Problem, deviance: Float[ndarray, " fits"]) -> Float[ndarray, " fits"]:
    return (
        np.asarray(deviance / problem.rows) if type(problem.family).__name__ == "Gaussian" else np.ones(len(deviance))
    )


def _loss(
    problem: Problem, values: Float[ndarray, "fits terms"], scale: Float[ndarray, " fits"]
) -> Float[ndarray, " fits"]:
    return np.asarray(problem.deviance(values) / scale + problem.rows * np.log(scale))


def _tables(frame: Any, counts: Float[ndarray, "datasets distinct"], first: str, second: str) -> ndarray:
    rows, row_levels = codes_of(frame, first)
    columns, column_levels = codes_of(frame, second)
    cells = rows * len(column_levels) + columns
    size = len(row_levels) * len(column_levels)
    flat = np.stack([np.bincount(cells, one, minlength=size) for one in counts])
    return flat.reshape(len(counts), len(row_levels), len(column_levels))


def _g_square(
    tables: Float[ndarray, "datasets rows columns"], shares: Float[ndarray, "datasets rows columns"]
) -> Float[ndarray, " datasets"]:
    """2 Σ count · log(share / product of its margins), for each dataset; empty cells add nothing."""
    expected = shares.sum(axis=2, keepdims=True) * shares.sum(axis=1, keepdims=True)
    ratio = np.divide(shares, expected, out=np.ones(shares.shape), where=tables > 0)
    return np.asarray(2 * (tables * np.log(ratio)).sum(axis=(1, 2)))
