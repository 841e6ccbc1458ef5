"""Pooling rules whose reference is a mixture of normal distributions instead of one t distribution."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.pooling import Given, PooledEstimate, PoolingRule
from noisewise.analysis.references import MixtureReference
from noisewise.errors import AnalysisError


@dataclass(frozen=True, kw_only=True)
class FewDatasets(PoolingRule):
    """Fully synthetic data when m is small: the posterior itself, instead of a t with matched moments.

    Use it for about 20 datasets or fewer, or where `FullySynthetic` falls back. The variance between posterior
    draws is unknown and positive, and both are taken into account: given the datasets,

        spread = (m - 1) between / χ²(m - 1), restricted to spread > within
        Q ~ Normal(mean estimate, (1 + 1/m) (spread - within) + within / m)

    and the interval comes from the mixture over `spread`. The published rule samples it; here it is a sum
    over `nodes` equally likely values, so that the result needs no seed. With few datasets it errs to the
    wide side.

    Source: after Si & Reiter (2011), Journal of Statistical Theory and Practice 5:335-347.
    """

    nodes: int = 2000
    """Number of equally likely values of `spread` in the mixture."""

    name = "fully synthetic data, few datasets (after Si & Reiter 2011)"
    source = "Si & Reiter (2011), J. Statistical Theory and Practice 5:335-347"

    within_weight = -1.0

    def between_weight(self, datasets: int) -> float:
        return 1 + 1 / datasets

    def conclude(self, given: Given) -> PooledEstimate:
        between, within, datasets = given.between, given.within, given.datasets
        if between == 0 or within == 0:
            raise AnalysisError(
                f"FewDatasets needs estimates that differ (between is {between:g}) and positive variances (within is "
                f"{within:g}). Check that the datasets are not copies and that the analysis returns variances."
            )
        spread = _spreads(between, within, datasets, self.nodes)
        conditional = (1 + 1 / datasets) * (spread - within) + within / datasets
        reference = MixtureReference(centers=np.full(self.nodes, given.estimate), stddevs=np.sqrt(conditional))
        return given.pooled(variance=_mixture_variance(reference), reference=reference)


def _spreads(between: float, within: float, datasets: int, nodes: int) -> Float[ndarray, " nodes"]:
    """Equally likely values of spread = (m - 1) between / χ²(m - 1), given that it exceeds `within`."""
    from scipy.special import gammainc, gammaincinv

    shape, sum_of_squares = (datasets - 1) / 2, (datasets - 1) * between
    largest = sum_of_squares / within
    most, shares = gammainc(shape, largest / 2), (np.arange(nodes) + 0.5) / nodes
    if most < np.finfo(float).tiny:  # so far in the tail that the density is that of its leading power
        chi_square = largest * shares ** (1 / shape)
    else:
        chi_square = 2 * gammaincinv(shape, most * shares)
    return np.asarray(np.maximum(sum_of_squares / chi_square, within), dtype=float)


def _mixture_variance(reference: MixtureReference) -> float:
    """The squared half-width of the 68.3 % interval: the variance itself is infinite for few datasets."""
    low, high = reference.interval(0.31731050786291415)
    return float(((high - low) / 2) ** 2)


@dataclass(frozen=True, kw_only=True)
class PosteriorMixture(PoolingRule):
    """Bayesian pooling: mix the posteriors that the datasets give, without any correction.

    Use it when each synthetic dataset has far more rows than the confidential table (ten times or more), and a
    hundred datasets or more: then the sampling of the synthetic rows vanishes and the mixture tends to the posterior
    given the noisy counts. With as many rows as the original, intervals are too wide; with fifty datasets 95 %
    intervals cover about 92 %. Each dataset's posterior is Normal(estimate, variance).

        total = (1 - 1/m) between + within

    Source: Räisä, Jälkö & Honkela (2024), On Consistent Bayesian Inference from Synthetic Data.
    """

    enough: float = 10.0
    """Below this many synthetic rows per original row the result carries a caution."""
    enough_datasets: int = 100
    """The same for datasets: the ends of the interval are those of few narrow posteriors."""

    name = "mixture of the datasets' posteriors"
    source = "Räisä, Jälkö & Honkela (2024), On Consistent Bayesian Inference from Synthetic Data"

    def between_weight(self, datasets: int) -> float:
        return 1 - 1 / datasets

    def conclude(self, given: Given) -> PooledEstimate:
        if (given.variances == 0).any():
            raise AnalysisError("A dataset's variance is 0: its posterior is a point. Return positive variances.")
        return given.pooled(
            variance=self.between_weight(given.datasets) * given.between + given.within,
            caution=self._rows_caution(given.rows, given.original_rows) or self._datasets_caution(given.datasets),
            reference=MixtureReference(centers=given.estimates, stddevs=np.sqrt(given.variances)),
        )

    def _rows_caution(self, rows: int | None, original_rows: int | None) -> str:
        if rows is None or original_rows is None:
            return "mixing posteriors is right only with far more synthetic than original rows; their ratio is unknown"
        if rows < self.enough * original_rows:
            return (
                f"mixing posteriors needs about {self.enough:g} synthetic rows per original row, here "
                f"{rows / original_rows:.2g}: intervals are too wide; draw larger datasets or use FullySynthetic()"
            )
        return ""

    def _datasets_caution(self, datasets: int) -> str:
        if datasets >= self.enough_datasets:
            return ""
        return (
            f"mixing posteriors needs about {self.enough_datasets} datasets, here {datasets}: intervals are too short; "
            "draw more datasets"
        )
