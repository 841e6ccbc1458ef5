"""A posterior: draws of the model's parameters with the verdict on whether they may be used.

Plain NumPy, so that whoever holds a release can read it, draw datasets and judge it without a sampler.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict

from noisewise.errors import ModelError, ReleaseError
from noisewise.model.maxent import MaxEnt
from noisewise.model.size import MAX_CLIQUE_CELLS
from noisewise.noisy_counts import NoisyCounts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Verdict(BaseModel):
    """Whether a posterior may be used, and why (not)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trusted: bool
    """Whether every check passed."""
    summary: str
    """One sentence for people."""
    reasons: tuple[str, ...] = ()
    """What failed, one sentence each; empty if trusted."""
    numbers: dict[str, float] = {}
    """The figures the checks looked at, by name."""


class FitRecord(BaseModel):
    """How a posterior was made: enough to make it again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    """Name of the method."""
    settings: dict[str, float | int | str | bool] = {}
    """The method's settings."""
    prior_stddev: float
    """Standard deviation of the normal prior on every parameter."""
    cells: str
    """Which noisy cells entered the likelihood: "all" or "canonical"."""
    seed: int
    """Seed of everything random in the fit."""
    choice: str = ""
    """Why this method, where `fit` chose it."""
    extended: int = 0
    """How often further chains were added."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Draws from the posterior of the maximum-entropy model, given the noisy counts."""

    noisy_counts: NoisyCounts
    """What was observed."""
    theta: Float[np.ndarray, "chains draws parameters"]
    """Draws of the parameters, chain by chain."""
    verdict: Verdict
    """Whether the draws may be used."""
    record: FitRecord
    """How the draws were made."""

    def __post_init__(self) -> None:
        if self.theta.ndim != 3 or self.theta.shape[2] != self.model.parameters:
            raise ReleaseError(
                f"The posterior holds draws of shape {self.theta.shape}; the model has {self.model.parameters} "
                "parameters. The posterior and the noisy counts are not of one release."
            )
        if not np.isfinite(self.theta).all():
            raise ReleaseError("The posterior holds draws that are not finite. Fit again.")
        self.theta.flags.writeable = False

    @cached_property
    def model(self) -> MaxEnt:
        """The model the parameters belong to."""
        return model_of(self.noisy_counts)

    def plot(self, *marginals: str | Sequence[str]) -> "Figure":
        """A picture per measured marginal: every cell's expected count with its 95 % interval, and the noisy count.

        Name marginals to see those only: `plot("age", "income")` for one, `plot(("age", "income"), ("race",))` for
        more. What comes back is a matplotlib figure. Needs the extra `plot`.
        """
        from noisewise.posterior.pictures import posterior_plot

        return posterior_plot(self, marginals)

    @property
    def hash(self) -> str:
        """SHA-256 of the draws."""
        shape = ",".join(map(str, self.theta.shape))
        return hashlib.sha256(shape.encode() + np.ascontiguousarray(self.theta, "<f8").tobytes()).hexdigest()

    @property
    def draws(self) -> Float[np.ndarray, "draws parameters"]:
        """All draws, chains one after the other."""
        return self.theta.reshape(-1, self.theta.shape[2])


def model_of(noisy_counts: NoisyCounts) -> MaxEnt:
    """The maximum-entropy model of the measured marginals; one that would not fit in memory is refused."""
    schema = noisy_counts.schema
    marginals = [tuple(schema.index(name) for name in marginal) for marginal in noisy_counts.marginals]
    model = MaxEnt.of(schema.sizes, marginals, schema.impossible)
    if model.tree.cells > MAX_CLIQUE_CELLS:
        tied = [schema.names[column] for column in model.tree.largest_clique]
        raise ModelError(
            f"The marginals tie {tied} together, and the model's tables have {model.tree.cells:,} cells in all, more "
            f"than {MAX_CLIQUE_CELLS:,}. Leave out a marginal that closes a ring, or declare fewer levels."
        )
    return model
