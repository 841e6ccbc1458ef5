"""The privacy budget: an immutable value. It is split, never spent in place; the parts add up to the whole."""

import math
from dataclasses import dataclass
from fractions import Fraction

from noisewise.errors import BudgetError, DataError

MAX_EPSILON = 1000.0
"""A larger ε promises nothing that could be called privacy; it is taken for a slip of the keyboard."""
MIN_DELTA = 1e-30
"""Below this the accounting is not computed."""


@dataclass(frozen=True)
class Budget:
    """How much privacy loss is allowed: (ε, δ) for neighbours that differ by the content of one unit.

    >>> Budget(1.0).resolved(rows=1000)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float = 1.0
    """ε: smaller is more private and noisier."""
    delta: float | None = None
    """δ: must be below 1/rows. Without one, `measure` takes 1/rows² and states it."""

    def __post_init__(self) -> None:
        _refuse_non_number("epsilon", self.epsilon)
        if not 0 < self.epsilon <= MAX_EPSILON:
            raise BudgetError(
                f"epsilon is {self.epsilon}; it must lie above 0 and at most {MAX_EPSILON:g}. "
                "Common choices are 0.1 to 10."
            )
        if self.delta is None:
            return
        _refuse_non_number("delta", self.delta)
        if not MIN_DELTA <= self.delta < 1:
            raise BudgetError(
                f"delta is {self.delta}; it must lie between {MIN_DELTA:g} and 1, and below 1/rows. "
                "Leave it out to use 1/rows²."
            )

    def resolved(self, rows: int) -> "Budget":
        """The same budget with its δ settled for a table of so many rows (which is public)."""
        if rows < 2:
            raise DataError("table-too-small")
        delta = float(Fraction(1, rows**2)) if self.delta is None else self.delta
        if not MIN_DELTA <= delta < 1 / rows:
            raise DataError("table-too-small")
        return Budget(self.epsilon, delta)

    def split(self, *shares: float) -> tuple["Budget", ...]:
        """Parts in proportion to the shares; their ε and their δ add up to this budget's and never pass it."""
        if not shares or not all(isinstance(share, int | float) and 0 < share < math.inf for share in shares):
            raise BudgetError(f"A budget is split by positive shares, got {shares}.")
        whole = sum(Fraction(share) for share in shares)
        fractions = [Fraction(share) / whole for share in shares]
        epsilons = _parts(self.epsilon, fractions)
        deltas: list[float | None] = [None] * len(shares)
        if self.delta is not None:
            deltas = list(_parts(self.delta, fractions))
        return tuple(Budget(epsilon, delta) for epsilon, delta in zip(epsilons, deltas, strict=True))

    def __sub__(self, spent: "Budget") -> "Budget":
        """What is left after `spent`, by simple addition of ε and of δ; an error when nothing is left."""
        if (self.delta is None) != (spent.delta is None):
            raise BudgetError("One budget has a delta and the other has not. Settle both with resolved(rows) first.")
        left = Fraction(self.epsilon) - Fraction(spent.epsilon)
        left_delta = None if self.delta is None or spent.delta is None else Fraction(self.delta) - Fraction(spent.delta)
        if left <= 0 or (left_delta is not None and left_delta <= 0):
            raise BudgetError(f"Cannot take {spent} from {self}: nothing would be left. Ask for less.")
        return Budget(_below(left), None if left_delta is None else _below(left_delta))


def _parts(whole: float, fractions: list[Fraction]) -> list[float]:
    """Floats whose exact sum is at most the whole: each rounded down, the last takes what is left."""
    parts = [_below(Fraction(whole) * fraction) for fraction in fractions[:-1]]
    return [*parts, _below(Fraction(whole) - sum(Fraction(part) for part in parts))]


def _below(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _refuse_non_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BudgetError(f"{name} is {value!r}; it must be a finite number. Give one such as 1.0.")
