"""Pooling rules: m estimates and their variances become one estimate with an honest error bar.

Synthetic data are not missing data, and a rule for the one is wrong for the other by a sign. Each rule
is therefore an object with its own name, and the name says for which data it holds.

    FullySynthetic          the default: every row is synthetic and the posterior draw differs by dataset
    FullySyntheticNormal    the same for many datasets, with a normal reference
    FewDatasets             fully synthetic data when m is small and T may be negative (in mixtures.py)
    PosteriorMixture        mixes each dataset's posterior; needs far more synthetic than original rows (likewise)
    MissingDataRule         Rubin's rule for multiply imputed missing values: not for a release (in other_data.py)
    PartiallySynthetic      only some values were replaced: not for a release (likewise)

The words, for one estimand: `estimates` and `variances` hold one number per dataset; `within` is the mean
variance, `between` the variance of the estimates (denominator m - 1), `total` the pooled variance.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.references import Reference, StudentReference
from noisewise.errors import AnalysisError

POPULATION = "the population that the confidential rows were drawn from"
LITTLE_DOF = 2.0  # below this a t interval has no finite variance and says almost nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class PooledEstimate:
    """One estimand, pooled over the datasets."""

    estimate: float
    """The mean of the datasets' estimates."""
    variance: float
    """The pooled variance, after any fallback."""
    within: float
    """Mean of the datasets' variances."""
    between: float
    """Variance of the datasets' estimates."""
    dof: float
    """Degrees of freedom of the reference distribution; infinite for a normal one or a mixture."""
    datasets: int
    """How many datasets were pooled."""
    fallback: str
    """Which fallback was used, in a sentence; empty if none."""
    caution: str
    """What a reader must know before using the interval; empty if nothing."""
    reference: Reference
    """What intervals and p-values come from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """What a rule pools: the estimates of one estimand, and their moments."""

    estimates: Float[ndarray, " datasets"]
    """One per dataset."""
    variances: Float[ndarray, " datasets"]
    """Theirs, each within its dataset."""
    estimate: float
    """The mean estimate."""
    within: float
    """The mean variance."""
    between: float
    """The variance of the estimates, with denominator m - 1."""
    rows: int | None
    """Rows of one synthetic dataset."""
    original_rows: int | None
    """Rows of the confidential table."""

    @property
    def datasets(self) -> int:
        """How many there are: m."""
        return len(self.estimates)

    def pooled(
        self, *, variance: float, reference: Reference, dof: float = np.inf, fallback: str = "", caution: str = ""
    ) -> PooledEstimate:
        """The result, once a rule has found its variance and reference."""
        return PooledEstimate(
            estimate=self.estimate,
            variance=variance,
            within=self.within,
            between=self.between,
            dof=dof,
            datasets=self.datasets,
            fallback=fallback,
            caution=caution,
            reference=reference,
        )


class PoolingRule(ABC):
    """A way to pool estimates over synthetic datasets, with total = between_weight · between + within_weight · within.

    To add one, write a frozen dataclass with a name, a source, the weights and `conclude`.
    """

    name: ClassVar[str]
    """How results call the rule."""
    source: ClassVar[str]
    """Where the rule comes from."""
    estimand: ClassVar[str] = POPULATION
    """What the intervals are about."""
    within_weight: ClassVar[float] = 1.0
    """How much of `within` enters `total`; negative for fully synthetic data."""

    @abstractmethod
    def between_weight(self, datasets: int) -> float:
        """How much of `between` enters `total`."""

    @abstractmethod
    def conclude(self, given: Given) -> PooledEstimate:
        """Find variance and reference distribution."""

    def pool(
        self,
        estimates: Float[ndarray, " datasets"],
        variances: Float[ndarray, " datasets"],
        *,
        rows: int | None = None,
        original_rows: int | None = None,
    ) -> PooledEstimate:
        """Pool one estimand; `rows` are those of one synthetic dataset, `original_rows` the confidential ones."""
        _check(estimates, variances)
        return self.conclude(
            Given(
                estimates=estimates,
                variances=variances,
                estimate=float(np.mean(estimates)),
                within=float(np.mean(variances)),
                between=float(np.var(estimates, ddof=1)),
                rows=rows,
                original_rows=original_rows,
            )
        )

    def total_covariance(
        self, within: Float[ndarray, "terms terms"], between: Float[ndarray, "terms terms"], datasets: int
    ) -> Float[ndarray, "terms terms"]:
        """The pooled covariance matrix before any fallback."""
        return self.between_weight(datasets) * between + self.within_weight * within


class MomentRule(PoolingRule):
    """Rules with a t reference for `total`."""

    normal: ClassVar[bool] = False
    """Whether the reference is normal instead."""

    def conclude(self, given: Given) -> PooledEstimate:
        from_between = self.between_weight(given.datasets) * given.between
        total = from_between + self.within_weight * given.within
        variance, fallback = self.positive(total, given)
        if variance == 0:
            raise AnalysisError(
                f"All {given.datasets} estimates equal {given.estimate:g} with variance 0: there is no uncertainty to "
                "pool. Check that the analysis varies over datasets and returns a variance."
            )
        dof = np.inf if self.normal else degrees_of_freedom(total, from_between, given.datasets)
        return given.pooled(
            variance=variance,
            dof=dof,
            fallback=fallback,
            caution=_caution(given.between, dof),
            reference=StudentReference(center=given.estimate, stddev=float(np.sqrt(variance)), dof=dof),
        )

    def positive(self, total: float, given: Given) -> tuple[float, str]:
        """The variance to use, and the fallback's name; most rules cannot give a negative one."""
        return total, ""


def _check(estimates: Float[ndarray, " datasets"], variances: Float[ndarray, " datasets"]) -> None:
    """Refuse what cannot be pooled."""
    if len(estimates) < 2:
        raise AnalysisError(
            f"Pooling needs at least 2 datasets, got {len(estimates)}: the spread between datasets carries the "
            "privacy noise. Draw more datasets; one of them alone gives intervals that are too short."
        )
    bad = np.flatnonzero(~np.isfinite(estimates) | ~np.isfinite(variances))
    if bad.size:
        raise AnalysisError(
            f"The analysis of dataset {bad[0]} returned a value that is not a finite number ({bad.size} datasets in "
            "all). Repair the analysis, or make it raise an AnalysisError so that the dataset is left out and counted."
        )
    if (variances < 0).any():
        first = int(np.flatnonzero(variances < 0)[0])
        raise AnalysisError(
            f"The variance in dataset {first} is {variances[first]:g}: negative. Return variances, squared errors."
        )


def degrees_of_freedom(total: float, from_between: float, datasets: int) -> float:
    """ν = (m - 1) (total / from_between)², where `from_between` is the part of `total` that `between` gives.

    For fully synthetic data this is (m - 1) (1 - within / ((1 + 1/m) between))².
    """
    if from_between == 0:
        return np.inf
    return float((datasets - 1) * (total / from_between) ** 2)


def _caution(between: float, dof: float) -> str:
    if between == 0:
        return "the estimate is the same in all datasets: either they are copies, or the analysis ignores the data"
    if dof < LITTLE_DOF:
        return (
            f"fewer than {LITTLE_DOF:g} degrees of freedom, because the spread between datasets is close to that "
            "within: the interval is very wide; draw more datasets or pool with FewDatasets()"
        )
    return ""


class _FullySyntheticMoments(MomentRule):
    within_weight = -1.0

    def between_weight(self, datasets: int) -> float:
        return 1 + 1 / datasets

    def positive(self, total: float, given: Given) -> tuple[float, str]:
        if total > 0:
            return total, ""
        sizes = {"rows": given.rows, "original_rows": given.original_rows}
        if given.rows is None or given.original_rows is None:
            lacking = " and ".join(f"{name}=" for name, size in sizes.items() if size is None)
            raise AnalysisError(
                f"The pooled variance is {total:g}, not positive, and the fallback (rows / original_rows) · within "
                f"needs both numbers of rows. Give {lacking}, or pool with FewDatasets()."
            )
        variance = given.rows / given.original_rows * given.within
        return variance, "T was not positive: (rows / original_rows) · within was used instead"


@dataclass(frozen=True, kw_only=True)
class FullySynthetic(_FullySyntheticMoments):
    """The default: multiple imputation rules for fully synthetic data.

    Use it for a noisewise release. It assumes that each dataset comes from its own posterior draw, that rows
    within a dataset are independent given the draw, that the analysis gives nearly normal estimates with
    nearly unbiased variances, and that the model of the release holds.

        total = (1 + 1/m) between - within
        total ≤ 0:  total = (rows / original_rows) within
        dof = (m - 1) (1 - within / ((1 + 1/m) between))²

    `within` is subtracted because the spread between datasets already contains the sampling of their rows.

    Source: Raghunathan, Reiter & Rubin (2003), Journal of Official Statistics 19:1-16; the fallback is that of
    Reiter (2002), Journal of Official Statistics 18:531-543.
    """

    name = "fully synthetic data (Raghunathan, Reiter & Rubin 2003)"
    source = "Raghunathan, Reiter & Rubin (2003), J. Official Statistics 19:1-16"


@dataclass(frozen=True, kw_only=True)
class FullySyntheticNormal(_FullySyntheticMoments):
    """`FullySynthetic` with a normal reference instead of a t: for a hundred datasets or more.

    The fallback is the same. With few datasets the intervals are too short.

    Source: Raghunathan, Reiter & Rubin (2003), Journal of Official Statistics 19:1-16.
    """

    name = "fully synthetic data, large m (normal reference)"
    source = "Raghunathan, Reiter & Rubin (2003), J. Official Statistics 19:1-16"
    normal = True
