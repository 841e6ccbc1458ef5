"""Pooling rules: m estimates and their variances become one estimate with an honest error bar.

Synthetic data are not missing data, and a rule for the one is wrong for the other by a sign. Each rule
is therefore an object with its own name, and the name says for which data it holds.

    FullySynthetic          the default: every row is synthetic and the posterior draw differs by dataset
    FullySyntheticNormal    the same for many datasets, with a normal reference
    FewDatasets             fully synthetic data when m is small and T may be negative (in mixtures.py)
    PosteriorMixture        mixes each dataset's posterior; needs far more synthetic than original rows (likewise)
    MissingDataRule         Rubin's rule for multiply imputed missing values: not for a noisewise release
    PartiallySynthetic      only some values were replaced: not for a noisewise release

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


class PoolingRule(ABC):
    """A way to pool estimates over synthetic datasets."""

    name: ClassVar[str]
    """How results call the rule."""
    source: ClassVar[str]
    """Where the rule comes from."""
    estimand: ClassVar[str] = POPULATION
    """What the intervals are about."""

    @abstractmethod
    def pool(
        self,
        estimates: Float[ndarray, " datasets"],
        variances: Float[ndarray, " datasets"],
        *,
        rows: int | None = None,
        original_rows: int | None = None,
    ) -> PooledEstimate:
        """Pool one estimand; `rows` are those of one synthetic dataset, `original_rows` the confidential ones."""

    @abstractmethod
    def total_covariance(
        self, within: Float[ndarray, "terms terms"], between: Float[ndarray, "terms terms"], datasets: int
    ) -> Float[ndarray, "terms terms"]:
        """The pooled covariance matrix before any fallback."""


class _MomentRule(PoolingRule):
    """Rules of the form total = between_weight · between + within_weight · within, with a t reference."""

    normal: ClassVar[bool] = False

    @abstractmethod
    def between_weight(self, datasets: int) -> float:
        """How much of `between` enters `total`."""

    within_weight: ClassVar[float] = 1.0

    def total_covariance(
        self, within: Float[ndarray, "terms terms"], between: Float[ndarray, "terms terms"], datasets: int
    ) -> Float[ndarray, "terms terms"]:
        return self.between_weight(datasets) * between + self.within_weight * within

    def pool(
        self,
        estimates: Float[ndarray, " datasets"],
        variances: Float[ndarray, " datasets"],
        *,
        rows: int | None = None,
        original_rows: int | None = None,
    ) -> PooledEstimate:
        estimate, within, between = moments(estimates, variances)
        datasets = len(estimates)
        from_between = self.between_weight(datasets) * between
        total = from_between + self.within_weight * within
        dof = degrees_of_freedom(total, from_between, datasets)
        variance, fallback = self.positive(total, within, rows, original_rows)
        if variance == 0:
            raise AnalysisError(
                f"All {datasets} estimates equal {estimate:g} with variance 0: there is no uncertainty to pool. "
                "Check that the analysis varies over datasets and returns a variance."
            )
        dof = np.inf if self.normal else dof
        return PooledEstimate(
            estimate=estimate,
            variance=variance,
            within=within,
            between=between,
            dof=dof,
            datasets=datasets,
            fallback=fallback,
            caution=_caution(between, dof),
            reference=StudentReference(center=estimate, stddev=float(np.sqrt(variance)), dof=dof),
        )

    def positive(self, total: float, within: float, rows: int | None, original_rows: int | None) -> tuple[float, str]:
        """The variance to use, and the fallback's name; most rules cannot give a negative one."""
        return total, ""


def moments(
    estimates: Float[ndarray, " datasets"], variances: Float[ndarray, " datasets"]
) -> tuple[float, float, float]:
    """Mean estimate, mean variance (`within`) and variance of the estimates (`between`)."""
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
    return float(np.mean(estimates)), float(np.mean(variances)), float(np.var(estimates, ddof=1))


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


class _FullySyntheticMoments(_MomentRule):
    within_weight = -1.0

    def between_weight(self, datasets: int) -> float:
        return 1 + 1 / datasets

    def positive(self, total: float, within: float, rows: int | None, original_rows: int | None) -> tuple[float, str]:
        if total > 0:
            return total, ""
        if rows is None or original_rows is None:
            lacking = " and ".join(
                f"{name}=" for name, size in (("rows", rows), ("original_rows", original_rows)) if size is None
            )
            raise AnalysisError(
                f"The pooled variance is {total:g}, not positive, and the fallback (rows / original_rows) · within "
                f"needs both numbers of rows. Give {lacking}, or pool with FewDatasets()."
            )
        return rows / original_rows * within, "T was not positive: (rows / original_rows) · within was used instead"


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


@dataclass(frozen=True, kw_only=True)
class MissingDataRule(_MomentRule):
    """Rubin's rule for multiply imputed missing data: *not* for synthetic data.

        total = (1 + 1/m) between + within
        dof = (m - 1) (1 + within / ((1 + 1/m) between))²

    Here for comparison and for pooling tables of imputed real data. On a noisewise release its intervals are
    too wide, because the sampling of the synthetic rows is counted twice and added instead of subtracted.

    Source: Rubin (1987), Multiple Imputation for Nonresponse in Surveys, chapter 3.
    """

    name = "missing data, NOT synthetic data (Rubin 1987)"
    source = "Rubin (1987), Multiple Imputation for Nonresponse in Surveys"

    def between_weight(self, datasets: int) -> float:
        return 1 + 1 / datasets


@dataclass(frozen=True, kw_only=True)
class PartiallySynthetic(_MomentRule):
    """The rule for data of which some values were replaced and the units are real: *not* for a release.

        total = between / m + within
        dof = (m - 1) (1 + within / (between / m))²

    On a noisewise release it treats the m datasets as if `within` held the sampling of real rows and its
    intervals miss the privacy noise.

    Source: Reiter (2003), Survey Methodology 29:181-188.
    """

    name = "partially synthetic data, NOT fully synthetic (Reiter 2003)"
    source = "Reiter (2003), Survey Methodology 29:181-188"

    def between_weight(self, datasets: int) -> float:
        return 1 / datasets
