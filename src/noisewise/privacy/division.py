"""How one budget is divided over several private acts: each gets its share, and together they cost what was allowed.

Every act is at some distance from its neighbour in the terms of Gaussian noise of size 1: √(Σ 2k²/stddev²) for noisy
counts, `round_distance` for a choice. Squared distances add up, so a share is a share of their sum. It is settled from
public facts alone, before anything is drawn; what is chosen later cannot change what anything costs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import logit, ndtr

from noisewise.errors import BudgetError
from noisewise.privacy.accounting import MIN_STDDEV, PrivacyLoss, round_up, smallest

_DIGITS = 9  # ε of a choice is rounded down here
_FARTHEST = 10.0  # a choice at this distance is as good as certain; what it leaves is not used up


@dataclass(frozen=True, kw_only=True)
class Part:
    """One private act that wants a share of a budget: marginals to measure, choices to make, or both.

    With both, half of the share goes to the marginals and half to the choices.
    """

    share: float
    """Its share, in any unit: the parts' shares are divided by their sum."""
    weights: tuple[float, ...] = ()
    """One per marginal: how the part's share is divided among them. Weight 4 halves the noise that weight 1 gets."""
    rounds: int = 0
    """Draws of the exponential mechanism; each gets the same."""

    def __post_init__(self) -> None:
        if not all(isinstance(w, int | float) and 0 < w < math.inf for w in (self.share, *self.weights)):
            raise BudgetError(
                f"Shares and weights are positive numbers, got share {self.share} and weights {self.weights}."
            )
        if self.rounds < 0 or not (self.weights or self.rounds):
            raise BudgetError("A part of a budget measures something or chooses something. Leave this one out.")

    @property
    def marginal_shares(self) -> tuple[float, ...]:
        """The share of each marginal."""
        whole = math.fsum(self.weights)
        return tuple(self.share * (0.5 if self.rounds else 1.0) * weight / whole for weight in self.weights)

    @property
    def round_shares(self) -> tuple[float, ...]:
        """The share of each choice."""
        return (self.share * (0.5 if self.weights else 1.0) / (self.rounds or 1),) * self.rounds


def divide(epsilon: float, delta: float, parts: Sequence[Part], max_rows_per_unit: int = 1) -> tuple[PrivacyLoss, ...]:
    """What each part may cost so that all of them together are (ε, δ): as much as there is, and never more.

    >>> [loss.stddevs for loss in divide(1.0, 46043**-2, [Part(share=1.0, weights=(1.0,) * 10)])][0][0]
    25.129546
    """
    largest = max((share for part in parts for share in part.marginal_shares), default=0.0)
    if largest == 0.0:
        raise BudgetError("Nothing would be measured. Name at least one marginal.")

    def losses(stddev: float) -> tuple[PrivacyLoss, ...]:
        """The losses when the marginal with the largest share gets this noise."""
        squared = 2 * max_rows_per_unit**2 / stddev**2 / largest  # squared distance of a share of 1
        return tuple(
            PrivacyLoss(
                stddevs=tuple(
                    max(MIN_STDDEV, round_up(stddev * math.sqrt(largest / share))) for share in part.marginal_shares
                ),
                rounds=tuple(_choice(math.sqrt(squared * share)) for share in part.round_shares),
                max_rows_per_unit=max_rows_per_unit,
            )
            for part in parts
        )

    def enough(stddev: float) -> bool:
        return together(losses(stddev)).delta(epsilon) <= delta

    return losses(smallest(enough, start=float(max_rows_per_unit), floor=MIN_STDDEV))


def _choice(distance: float) -> float:
    """ε of the choice that is as hard to tell apart as two normals at this distance, rounded down."""
    exact = 2 * float(logit(ndtr(min(distance, _FARTHEST) / 2)))
    return math.floor(exact * 10**_DIGITS) / 10**_DIGITS


def together(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    """All of them, one after the other, on the same table."""
    if not losses:
        raise BudgetError("Without a single private act there is nothing to add up. Name at least one.")
    whole = losses[0]
    for loss in losses[1:]:
        whole = whole + loss
    return whole
