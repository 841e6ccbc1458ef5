"""What an estimator hands to the pooling: estimates and covariances of all datasets, and what was left out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from noisewise.errors import AnalysisError


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """One estimate and covariance per dataset, with a mask of what may be pooled."""

    terms: tuple[str, ...]
    """Names of the estimands."""
    values: Float[ndarray, "datasets terms"]
    """The estimates."""
    covariances: Float[ndarray, "datasets terms terms"]
    """Their covariance matrices, each within its dataset."""
    used: Bool[ndarray, "datasets terms"]
    """False where a dataset has no usable estimate of a term."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reasons for which something was left out, with the number of datasets."""
    notes: tuple[str, ...] = ()
    """What was assumed or done on the way, one sentence each."""
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns that each term speaks of (those of the outcome included), where they are known."""
    title: str = ""
    """What was fitted, for the head of the summary."""
    covariances_known: bool = True
    """False where only variances are known, as in a table of standard errors."""

    @property
    def variances(self) -> Float[ndarray, "datasets terms"]:
        """The diagonals of the covariance matrices."""
        return np.diagonal(self.covariances, axis1=1, axis2=2)


class Estimator(ABC):
    """An analysis that can be run on every synthetic dataset.

    To add one, write a frozen dataclass with `fit`; to use any function or fitted-model library, see
    `Custom`.
    """

    formula: str
    """The columns the analysis uses, as a formula; empty if unknown."""

    @property
    def rests_on(self) -> str:
        """The formula that the support check reads: `formula`, and what the analysis uses besides."""
        return self.formula

    @abstractmethod
    def fit(self, datasets: Sequence[Any]) -> Estimates:
        """Estimates on each dataset, in their order."""


def check_estimates(estimates: Estimates, max_left_out: float) -> None:
    """Refuse to pool when a term is missing from too many datasets."""
    datasets = len(estimates.used)
    for term, used in zip(estimates.terms, estimates.used.sum(axis=0), strict=True):
        if used < 2 or used < (1 - max_left_out) * datasets:
            reasons = "; ".join(f"{reason} ({count})" for reason, count in estimates.left_out.items())
            raise AnalysisError(
                f"The term {term!r} could be estimated in {used} of {datasets} datasets only. "
                f"Left out, with the number of datasets: {reasons or 'no reason given'}. "
                "Leaving out so many would bias the result. Leave out one of two columns that say the same, merge rare "
                "levels, use a ridge with bootstrap variances (remedy=RidgeBootstrap()), or raise max_left_out if you "
                "accept it."
            )


def combined(estimates: Estimates, names: tuple[str, ...], weights: Float[ndarray, "combinations terms"]) -> Estimates:
    """Linear combinations of the terms; a dataset that lacks a term lacks the combinations with it."""
    needed = weights != 0
    about = {
        name: tuple(
            dict.fromkeys(v for t in np.flatnonzero(row) for v in estimates.variables.get(estimates.terms[t], ()))
        )
        for name, row in zip(names, needed, strict=True)
    }
    return Estimates(
        terms=names,
        values=estimates.values @ weights.T,
        covariances=weights @ estimates.covariances @ weights.T,
        used=np.stack([estimates.used[:, row].all(axis=1) for row in needed], axis=1),
        left_out=estimates.left_out,
        notes=estimates.notes,
        variables={name: columns for name, columns in about.items() if columns},
        title=f"Combinations of: {estimates.title}" if estimates.title else "",
    )


def counted(masks: Mapping[str, Bool[ndarray, "datasets terms"]]) -> dict[str, int]:
    """For each reason the number of datasets in which it left something out; reasons without any are dropped."""
    return {reason: int(mask.any(axis=1).sum()) for reason, mask in masks.items() if mask.any()}


def spread_summary(counts: Sequence[int]) -> str:
    """'12' or '9 to 14', for counts that differ by dataset."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
