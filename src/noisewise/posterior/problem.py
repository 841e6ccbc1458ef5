"""The inference problem as arrays: what every method of fitting is given."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from noisewise.errors import FitError
from noisewise.model.maxent import MaxEnt
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.result import model_of


@dataclass(frozen=True, kw_only=True)
class NormalPrior:
    """Independent normal prior with mean zero on every parameter θ.

    The default is that of Räisä et al. (2023): weak, but proper, so that cells lost in the noise keep a
    finite posterior.
    """

    stddev: float = 10.0
    """Standard deviation of every parameter."""

    def __post_init__(self) -> None:
        if not 0 < self.stddev < np.inf:
            raise FitError(f"The prior's stddev is {self.stddev}; it must be positive and finite. The default is 10.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Noisy counts as vectors over the measured cells, with the model and the prior."""

    model: MaxEnt
    """The model of the measured marginals."""
    noisy: Float[np.ndarray, " cells"]
    """Noisy counts of all measured cells."""
    noise_variance: Float[np.ndarray, " cells"]
    """Variance of the noise in every cell."""
    observed: Bool[np.ndarray, " cells"]
    """Which cells enter the likelihood."""
    rows: int
    """Number of rows n."""
    prior: NormalPrior
    """The prior."""

    @classmethod
    def of(cls, noisy_counts: NoisyCounts, prior: NormalPrior, cells: Literal["all", "canonical"]) -> "Problem":
        """Lay the noisy counts out as vectors; `cells` chooses which of them the likelihood sees."""
        model = model_of(noisy_counts)
        values = [m.values.reshape(-1).astype(float) for m in noisy_counts.measurements]
        variance = [np.full(m.values.size, float(m.stddev) ** 2) for m in noisy_counts.measurements]
        noisy = np.concatenate(values)
        if cells not in ("all", "canonical"):
            raise FitError(f'cells = {cells!r} is not known. Use "all" (the default) or "canonical".')
        return cls(
            model=model,
            noisy=noisy,
            noise_variance=np.concatenate(variance),
            observed=np.ones(len(noisy), bool) if cells == "all" else canonical_cells(model),
            rows=noisy_counts.rows,
            prior=prior,
        )


def canonical_cells(model: MaxEnt) -> Bool[np.ndarray, " cells"]:
    """One cell per parameter: its own levels, every other column of its first marginal at the reference.

    This is what the published experiments kept (130 of Adult's 159 cells). It costs accuracy and saves no
    privacy; it is here to reproduce them.
    """
    masks = [np.zeros(model.tree.shape(marginal), bool) for marginal in model.marginals]
    for block in model.blocks:
        first = next(i for i, marginal in enumerate(model.marginals) if set(block.columns) <= set(marginal))
        index = tuple(slice(1, None) if c in block.columns else slice(0, 1) for c in model.marginals[first])
        own = [c for c in model.marginals[first] if c in block.columns]
        there = np.transpose(block.source < block.stop - block.start, [block.columns.index(c) for c in own])
        masks[first][index] |= there[(slice(1, None),) * there.ndim].reshape(masks[first][index].shape)
    return np.concatenate([mask.reshape(-1) for mask in masks])
