"""Tests of several coefficients at once on fully synthetic data.

The covariance matrix of a few pooled coefficients is noisy when the datasets are few, and need not be positive
definite. `ReiterWald` trusts only the mean covariance matrix and one number for how much the synthesis adds;
`DirectWald` uses the whole pooled matrix and so needs many datasets, but no equality of losses.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.errors import AnalysisError

DOF_TO_SPARE = 4.0
"""`DirectWald` wants this many more degrees of freedom than constraints."""


@dataclass(frozen=True, kw_only=True)
class JointTest:
    """The result of testing several estimands at once."""

    statistic: float
    """The F statistic."""
    df_num: float
    """Numerator degrees of freedom: the number of constraints."""
    df_denom: float
    """Denominator degrees of freedom."""
    pvalue: float
    """Probability of a larger statistic if the hypothesis holds."""
    method: str
    """Which test, with its source."""
    fallback: str = ""
    """Which fallback was used; empty if none."""
    notes: tuple[str, ...] = ()
    """What to know before reading it: the release's own warnings, what it supports, what was left out."""

    def __str__(self) -> str:
        line = f"F({self.df_num:g}, {self.df_denom:.1f}) = {self.statistic:.4g}, p = {self.pvalue:.4g}  [{self.method}]"
        notes = (*self.notes, f"Fallback: {self.fallback}.") if self.fallback else self.notes
        return "\n".join([line, *(f"· {note}" for note in notes)])


class WaldMethod(ABC):
    """A way to test that several linear combinations have given values."""

    @abstractmethod
    def test(
        self,
        distances: Float[ndarray, "datasets constraints"],
        covariances: Float[ndarray, "datasets constraints constraints"],
        *,
        rows: int | None = None,
        original_rows: int | None = None,
    ) -> JointTest:
        """Test that the distances are zero; `covariances` are those within the datasets."""


@dataclass(frozen=True, kw_only=True)
class ReiterWald(WaldMethod):
    """Reiter's Wald test for fully synthetic data.

    Use it with few datasets. It assumes that synthesis and noise cost every combination the same share of
    information; with privacy noise they do not, and the test's size drifts (see `DirectWald`).

        ratio = (1 + 1/m) trace(between · within⁻¹) / k
        statistic = distance' within⁻¹ distance / (k (ratio - 1))
        compared with F(k, w),  w = 4 + (t - 4) (1 - (1 - 2/t) / ratio)²,  t = k (m - 1)
        (t ≤ 4:  w = t (1 + 1/k) (1 - 1/ratio)² / 2)

    Where ratio ≤ 1, rows / original_rows takes the place of ratio - 1, as for one coefficient.

    Source: Reiter (2005), Journal of Statistical Planning and Inference 131:365-377.
    """

    def test(
        self,
        distances: Float[ndarray, "datasets constraints"],
        covariances: Float[ndarray, "datasets constraints constraints"],
        *,
        rows: int | None = None,
        original_rows: int | None = None,
    ) -> JointTest:
        distance, within, between = _matrix_moments(distances, covariances)
        datasets, constraints = distances.shape
        ratio = mean_ratio(within, between, datasets)
        excess, fallback = excess_ratio(ratio, rows, original_rows)
        statistic = float(distance @ np.linalg.solve(within, distance)) / (constraints * excess)
        return f_test(
            statistic,
            constraints,
            reiter_dof(ratio, constraints, datasets),
            "Wald test for fully synthetic data (Reiter 2005)",
            fallback,
        )


@dataclass(frozen=True, kw_only=True)
class DirectWald(WaldMethod):
    """A Wald test with the whole pooled covariance matrix: the default when there are many datasets.

    Use it with 20 or more datasets per constraint. It lets each combination lose its own share of
    information, as privacy noise makes them do.

        total = (1 + 1/m) between - within
        dof = (m - 1) (1 - 1/ratio)²,  ratio = (1 + 1/m) trace(between · within⁻¹) / k
        statistic = distance' total⁻¹ distance / k · (dof - k + 1) / dof
        compared with F(k, dof - k + 1)

    With one constraint it is the square of the t test. A total that is not positive definite is refused.

    Source: Hotelling's T² with the covariance matrix and degrees of freedom of Raghunathan, Reiter & Rubin (2003).
    """

    def test(
        self,
        distances: Float[ndarray, "datasets constraints"],
        covariances: Float[ndarray, "datasets constraints constraints"],
        *,
        rows: int | None = None,
        original_rows: int | None = None,
    ) -> JointTest:
        distance, within, between = _matrix_moments(distances, covariances)
        datasets, constraints = distances.shape
        total, dof = _total(within, between, datasets)
        if not _enough(total, dof):
            raise AnalysisError(
                f"The pooled covariance matrix of these {constraints} combinations is not positive definite, or "
                f"{datasets} datasets are too few for it. Draw more datasets, or use method=ReiterWald()."
            )
        quadratic = float(distance @ np.linalg.solve(total, distance))
        statistic = quadratic / constraints * (dof - constraints + 1) / dof
        return f_test(
            statistic, constraints, dof - constraints + 1, "Wald test with the whole pooled covariance matrix", ""
        )


def joint_method(
    distances: Float[ndarray, "datasets constraints"], covariances: Float[ndarray, "datasets constraints constraints"]
) -> WaldMethod:
    """`DirectWald` where its matrix is positive definite and known well enough, else `ReiterWald`."""
    _, within, between = _matrix_moments(distances, covariances)
    return DirectWald() if _enough(*_total(within, between, len(distances))) else ReiterWald()


def _total(within: ndarray, between: ndarray, datasets: int) -> tuple[ndarray, float]:
    dof = (datasets - 1) * (1 - 1 / mean_ratio(within, between, datasets)) ** 2
    return (1 + 1 / datasets) * between - within, dof


def _enough(total: ndarray, dof: float) -> bool:
    constraints = len(total)
    return bool(np.linalg.eigvalsh(total)[0] > 0 and dof >= constraints + DOF_TO_SPARE)


def mean_ratio(
    within: Float[ndarray, "constraints constraints"], between: Float[ndarray, "constraints constraints"], datasets: int
) -> float:
    """The ratio (1 + 1/m) trace(between · within⁻¹) / k: how much `between` exceeds `within` on average."""
    return float((1 + 1 / datasets) * np.trace(np.linalg.solve(within, between)) / len(within))


def excess_ratio(ratio: float, rows: int | None, original_rows: int | None) -> tuple[float, str]:
    """The ratio less 1, or its fallback where it is not positive."""
    if ratio > 1:
        return ratio - 1, ""
    if rows is None or original_rows is None:
        raise AnalysisError(
            f"The spread between datasets is {ratio:.3g} times that within: too small to test. Draw more datasets, or "
            "give rows= and original_rows= for the fallback."
        )
    return rows / original_rows, "the ratio was not above 1: rows / original_rows was used instead"


def reiter_dof(ratio: float, constraints: int, datasets: int) -> float:
    """Denominator degrees of freedom of the tests with one common ratio."""
    t = constraints * (datasets - 1)
    if t <= 4:
        return t * (1 + 1 / constraints) * (1 - 1 / ratio) ** 2 / 2
    return 4 + (t - 4) * (1 - (1 - 2 / t) / ratio) ** 2


def reiter_likelihood_ratio(
    own: Float[ndarray, " datasets"],
    at_mean: Float[ndarray, " datasets"],
    constraints: int,
    *,
    rows: int | None = None,
    original_rows: int | None = None,
) -> JointTest:
    """Reiter's likelihood-ratio test for fully synthetic data.

    `own` holds each dataset's statistic, minus twice the log ratio of the likelihoods; `at_mean` the same with each
    model's parameters replaced by their averages over the datasets.

        ratio = (m + 1) / (k (m - 1)) (mean own - mean at_mean)
        statistic = mean at_mean / (k (ratio - 1)), compared with F(k, w) as in `ReiterWald`

    It needs no covariance matrix, and like `ReiterWald` it takes one ratio for all directions.

    Source: Reiter (2005), Journal of Statistical Planning and Inference 131:365-377.
    """
    datasets = len(own)
    if datasets < 2:
        raise AnalysisError(f"A joint test needs at least 2 datasets, got {datasets}. Draw more datasets.")
    ratio = (datasets + 1) / (constraints * (datasets - 1)) * float(own.mean() - at_mean.mean())
    excess, fallback = excess_ratio(ratio, rows, original_rows)
    return f_test(
        float(at_mean.mean()) / (constraints * excess),
        constraints,
        reiter_dof(ratio, constraints, datasets),
        "Likelihood-ratio test for fully synthetic data (Reiter 2005)",
        fallback,
    )


def f_test(statistic: float, df_num: float, df_denom: float, method: str, fallback: str) -> JointTest:
    """Compare a statistic with F(df_num, df_denom); a ratio at averaged parameters may be negative: then p is 1."""
    from scipy.special import fdtrc

    return JointTest(
        statistic=statistic,
        df_num=df_num,
        df_denom=df_denom,
        pvalue=float(fdtrc(df_num, df_denom, max(statistic, 0.0))),
        method=method,
        fallback=fallback,
    )


def _matrix_moments(
    distances: Float[ndarray, "datasets constraints"], covariances: Float[ndarray, "datasets constraints constraints"]
) -> tuple[ndarray, ndarray, ndarray]:
    if len(distances) < 2:
        raise AnalysisError(f"A joint test needs at least 2 datasets, got {len(distances)}. Draw more datasets.")
    constraints = distances.shape[1]
    within = covariances.mean(axis=0)
    if np.linalg.matrix_rank(within, hermitian=True) < constraints:
        raise AnalysisError("The constraints repeat each other, or a term has variance 0. Remove one of them.")
    return distances.mean(axis=0), within, np.cov(distances, rowvar=False).reshape(constraints, constraints)
