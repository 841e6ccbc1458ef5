"""What to do about empty cells: levels without rows, or without both outcomes, in some of the datasets.

With strong privacy noise small cells come out empty in some datasets. A logistic coefficient is then
undetermined or infinite there. By default such estimates are left out and counted; these two remedies are
those of the published experiments.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DropHugeVariances:
    """Leave out single estimates whose variance says that the data hardly determine them.

    Use it for plain logistic regression when a few datasets have empty cells. It assumes that coefficients
    are of the order of 1, as those of yes/no variables and of numbers in sensible units are: the threshold
    is in squared units of the coefficient. Leaving out is not at random, so the result counts it.
    """

    threshold: float = 1000.0
    """Estimates with this variance or more are left out of the pooling of their term."""


@dataclass(frozen=True, kw_only=True)
class RidgeBootstrap:
    """A small ridge makes every estimate finite; the pair bootstrap gives its variance.

    Use it when many datasets have empty cells. In each dataset the rows are resampled `resamples` times with
    replacement; the estimate is the mean and its variance the variance (denominator resamples - 1) of

        argmax  mean log-likelihood - penalty / 2 · |coefficients|²

    All coefficients are penalised, the intercept too. Where a level is empty its coefficient is 0, which
    pulls the pooled estimate towards 0; the result counts how often.
    """

    penalty: float = 1e-5
    """Weight of the ridge, per row."""
    resamples: int = 50
    """Bootstrap resamples per dataset."""
    seed: int = 0
    """Seed of the resampling; dataset i uses the i-th child of it, whatever the other datasets are."""


Remedy = DropHugeVariances | RidgeBootstrap

REMEDIES: dict[str, type[Remedy]] = {"drop-huge-variances": DropHugeVariances, "ridge-bootstrap": RidgeBootstrap}
"""The remedies by the names that study files and releases use."""
