"""The pooled result: looks like a statsmodels result, and says how it came about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Real
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, combined
from noisewise.analysis.hypotheses import constraints_of
from noisewise.analysis.joint_tests import JointTest, WaldMethod, joint_method
from noisewise.analysis.pooling import FullySynthetic, FullySyntheticNormal, PooledEstimate, PoolingRule
from noisewise.analysis.support import Support
from noisewise.errors import AnalysisError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from noisewise.analysis.summaries import Summary


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """Estimates pooled over all synthetic datasets, with intervals for the population."""

    estimates: Estimates
    """What each dataset gave."""
    rule: PoolingRule
    """How they were pooled."""
    pooled: tuple[PooledEstimate, ...]
    """One pooled estimate per term."""
    rows: int | None
    """Rows of one synthetic dataset."""
    original_rows: int | None
    """Rows of the confidential table; None if unknown."""
    support: Support | None = None
    """Whether the release supports the analysis; None if the measured marginals or the formula are unknown."""
    warnings: tuple[str, ...] = ()
    """What the release itself says about its intervals, such as a posterior that did not converge."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the estimands."""
        return self.estimates.terms

    @property
    def datasets(self) -> int:
        """Number of synthetic datasets."""
        return len(self.estimates.values)

    @property
    def estimand(self) -> str:
        """What the intervals are about: the population, not the confidential sample."""
        return self.rule.estimand

    @property
    def params(self) -> "pd.Series":
        """Pooled estimates."""
        return self._series([one.estimate for one in self.pooled])

    @property
    def bse(self) -> "pd.Series":
        """Pooled standard errors."""
        return self._series([one.variance**0.5 for one in self.pooled])

    @property
    def tvalues(self) -> "pd.Series":
        """Estimates divided by their standard errors."""
        return self.params / self.bse

    @property
    def df(self) -> "pd.Series":
        """Degrees of freedom of each interval."""
        return self._series([one.dof for one in self.pooled])

    @property
    def pvalues(self) -> "pd.Series":
        """Two-sided p-values of the hypotheses that each estimand is zero."""
        return self._series([one.reference.pvalue(0.0) for one in self.pooled])

    @property
    def information_lost(self) -> "pd.Series":
        """Share of the information lost to synthesis and noise: 1 - (rows / original_rows) · within / total.

        (rows / original_rows) · within is about the variance that the confidential data would give.
        """
        if self.rows is None or self.original_rows is None:
            raise AnalysisError(
                "The information lost needs the rows of a synthetic dataset and of the confidential table. Give both."
            )
        factor = self.rows / self.original_rows
        return self._series([max(0.0, 1 - factor * one.within / one.variance) for one in self.pooled])

    @property
    def fallbacks(self) -> Mapping[str, str]:
        """The terms for which a fallback was used, and which."""
        return {term: one.fallback for term, one in zip(self.terms, self.pooled, strict=True) if one.fallback}

    @property
    def cautions(self) -> Mapping[str, str]:
        """The terms whose interval needs care, and why."""
        return {term: one.caution for term, one in zip(self.terms, self.pooled, strict=True) if one.caution}

    @property
    def left_out(self) -> Mapping[str, int]:
        """Reasons for which datasets, or single estimates of them, were left out, with counts."""
        return self.estimates.left_out

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Terms that describe the model's assumptions rather than the data."""
        return () if self.support is None else self.support.unsupported_terms(self.estimates.variables)

    def conf_int(self, alpha: float = 0.05) -> "pd.DataFrame":
        """Intervals that cover the estimand with probability 1 - alpha; columns 0 and 1 as in statsmodels."""
        import pandas as pd

        if not 0 < alpha < 1:
            raise AnalysisError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05 for 95 % intervals.")
        return pd.DataFrame([one.reference.interval(alpha) for one in self.pooled], index=list(self.terms))

    def cov_params(self) -> "pd.DataFrame":
        """The pooled covariance matrix; its diagonal is the square of `bse`."""
        import pandas as pd

        return pd.DataFrame(self._covariance[0], index=list(self.terms), columns=list(self.terms))

    @property
    def covariance_fallback(self) -> str:
        """What `cov_params` had to do where the pooled matrix is not a covariance matrix; empty if nothing."""
        if not self._covariance[1]:
            return ""
        return (
            "the pooled covariance matrix was not positive definite: cov_params() has the pooled variances with the "
            "correlations between datasets"
        )

    def wald_test(
        self,
        hypothesis: str | Sequence[str] | Real[ndarray, "constraints terms"],
        values: float | Sequence[float] | Real[ndarray, " constraints"] = 0.0,
        method: WaldMethod | None = None,
    ) -> JointTest:
        """Test several combinations at once: names of terms or columns, equations, or a matrix of constraints.

        `wald_test("race")` tests all levels of race, `wald_test(["age", "gender[T.Male]"])` two coefficients, and
        `wald_test("race[T.Black] = race[T.Other], age = 0.03")` two equations. Only
        datasets in which all the terms could be estimated enter. The test is for fully synthetic data; `method` is
        `DirectWald()` by default, or `ReiterWald()` where the datasets are too few for that; the result names it.
        """
        if not isinstance(self.rule, FullySynthetic | FullySyntheticNormal):
            raise AnalysisError(
                f"Joint tests are for fully synthetic data; this result was pooled as {self.rule.name}."
            )
        constraints, right = constraints_of(hypothesis, values, self.terms)
        self._need_covariances()
        complete = self.estimates.used[:, (constraints != 0).any(axis=0)].all(axis=1)
        distances = self.estimates.values[complete] @ constraints.T - right
        covariances = constraints @ self.estimates.covariances[complete] @ constraints.T
        chosen = method or joint_method(distances, covariances)
        test = chosen.test(distances, covariances, rows=self.rows, original_rows=self.original_rows)
        return replace(test, notes=self._notes_of_test(constraints, int(complete.sum())))

    def _notes_of_test(self, constraints: Float[ndarray, "constraints terms"], complete: int) -> tuple[str, ...]:
        tested = {term for term, used in zip(self.terms, (constraints != 0).any(axis=0), strict=True) if used}
        assumed = [term for term in self.unsupported if term in tested]
        notes = [f"Warning: {warning}" for warning in self.warnings]
        if assumed:
            notes.append(f"{', '.join(assumed)}: describes an assumption of the release's model, not the data.")
        if complete < self.datasets:
            notes.append(f"Datasets that entered: {complete} of {self.datasets}; the others lack an estimate.")
        return tuple(notes)

    def linear(self, combinations: Mapping[str, Mapping[str, float]]) -> "Pooled":
        """Pool linear combinations of the terms: `linear({"sum": {"a": 1, "b": 1}})`.

        Each combination is formed within every dataset that has all its terms, and then pooled by the same rule.
        """
        from noisewise.analysis.analyze import pool

        self._need_covariances()
        weights = np.zeros((len(combinations), len(self.terms)))
        for row, parts in enumerate(combinations.values()):
            for term, weight in parts.items():
                weights[row, self._position(term)] = weight
        return pool(
            combined(self.estimates, tuple(combinations), weights),
            rule=self.rule,
            rows=self.rows,
            original_rows=self.original_rows,
            support=self.support,
            warnings=self.warnings,
        )

    def difference(self, first: str, second: str) -> "Pooled":
        """The difference of two terms, such as two means: first less second."""
        return self.linear({f"{first} - {second}": {first: 1.0, second: -1.0}})

    @property
    def _sizes_known(self) -> bool:
        return self.rows is not None and self.original_rows is not None

    def _need_covariances(self) -> None:
        if not self.estimates.covariances_known and len(self.terms) > 1:
            raise AnalysisError(
                "The covariances between terms are unknown, because the results came as a table. Put the combination "
                "itself into the table as a term, or analyse the datasets here."
            )

    def _position(self, term: str) -> int:
        if term not in self.terms:
            raise AnalysisError(f"The result has no term {term!r}. {did_you_mean(term, self.terms)}")
        return self.terms.index(term)

    def summary(self, alpha: float = 0.05) -> "Summary":
        """A table for people: `print(result.summary())`, or `.as_html()` and `.as_latex()`."""
        from noisewise.analysis.summaries import Summary

        return Summary(result=self, alpha=alpha)

    def summary_frame(self, alpha: float = 0.05) -> "pd.DataFrame":
        """A tidy table, one row per term, with broom's column names and what the pooling adds."""
        intervals = self.conf_int(alpha)
        frame = intervals.assign(
            **{
                "term": list(self.terms),
                "estimate": self.params,
                "std.error": self.bse,
                "statistic": self.tvalues,
                "df": self.df,
                "p.value": self.pvalues,
                "within": [one.within for one in self.pooled],
                "between": [one.between for one in self.pooled],
                "lost": self.information_lost if self._sizes_known else np.nan,
                "datasets": [one.datasets for one in self.pooled],
                "fallback": [one.fallback for one in self.pooled],
                "caution": [one.caution for one in self.pooled],
            }
        ).rename(columns={0: "conf.low", 1: "conf.high"})
        if self.support is not None:
            frame["supported"] = [term not in self.unsupported for term in self.terms]
        first = ["term", "estimate", "std.error", "statistic", "df", "p.value", "conf.low", "conf.high"]
        return frame[[*first, *(name for name in frame.columns if name not in first)]].reset_index(drop=True)

    def plot(self, terms: Sequence[str] | None = None, *, reference: Any = None, alpha: float = 0.05) -> "Figure":
        """A picture: each pooled interval against the intervals of single datasets, and a reference where given.

        `reference` is a mapping from terms to values, or a fitted result with `params` and `conf_int`. What comes
        back is a matplotlib figure: `.savefig("intervals.svg")`. Needs the extra `plot`.
        """
        from noisewise.analysis.pictures import interval_plot

        return interval_plot(self, terms, reference=reference, alpha=alpha)

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything a reader should know besides the numbers, one sentence each."""
        from noisewise.analysis.summaries import alerts_of, notes_of

        return (*alerts_of(self), *notes_of(self))

    def __repr__(self) -> str:
        return f"<Pooled: {len(self.terms)} terms, {self.datasets} datasets, {self.rule.name}>"

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _series(self, values: Sequence[float]) -> "pd.Series":
        import pandas as pd

        return pd.Series(values, index=list(self.terms), dtype=float)

    @cached_property
    def _covariance(self) -> tuple[Float[ndarray, "terms terms"], bool]:
        """The pooled covariance matrix, and whether its correlations had to be taken from `between` alone."""
        self._need_covariances()
        complete = np.asarray(self.estimates.used.all(axis=1))
        if complete.sum() < 2:
            raise AnalysisError(
                "Fewer than 2 datasets have estimates of all terms, so that there is no pooled covariance matrix. "
                "Use the standard errors in bse, or a remedy for empty cells."
            )
        terms = len(self.terms)
        within = self.estimates.covariances[complete].mean(axis=0)
        between = np.cov(self.estimates.values[complete], rowvar=False).reshape(terms, terms)
        total = self.rule.total_covariance(within, between, int(complete.sum()))
        stddev = np.array([one.variance**0.5 for one in self.pooled])
        if np.linalg.eigvalsh(total)[0] > 0 and (complete.all() or not self.fallbacks):
            return _rescaled(total, stddev), False
        return _rescaled(between + 1e-300 * np.eye(terms), stddev), True


def _rescaled(matrix: Float[ndarray, "terms terms"], stddev: Float[ndarray, " terms"]) -> Float[ndarray, "terms terms"]:
    """The same correlations with the given standard deviations."""
    unit = np.sqrt(np.diagonal(matrix))
    return np.asarray(matrix / np.outer(unit, unit) * np.outer(stddev, stddev))
