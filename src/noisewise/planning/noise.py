"""The noise of a plan: marginal by marginal, act by act, budget by budget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from noisewise.errors import BudgetError
from noisewise.privacy.acts import MEASURE, planned_acts
from noisewise.privacy.budget import Budget
from noisewise.privacy.selection import Selection
from noisewise.privacy.statement import Act
from noisewise.schema import Schema
from noisewise.workload import Marginal, Workload

FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The budgets to compare with the study's own, as multiples of its ε."""
LARGEST_EPSILON = 20.0
"""Budgets beyond this are not proposed for comparison."""


@dataclass(frozen=True, kw_only=True)
class PlannedMarginal:
    """One marginal and the noise it would get."""

    columns: Marginal
    """The columns counted together."""
    cells: int
    """Number of cells that can hold rows."""
    stddev: float
    """Standard deviation of the noise in every cell."""
    average_count: float
    """Rows per such cell, on average."""

    @property
    def noise_share(self) -> float:
        """The noise relative to the average count."""
        return self.stddev / self.average_count


@dataclass(frozen=True, kw_only=True)
class PlannedAct:
    """One private act and what it would cost."""

    name: str
    """What would be done."""
    share: float
    """Its share of the budget."""
    rho: float
    """Its zero-concentrated cost."""
    detail: str
    """One sentence for people."""


@dataclass(frozen=True, kw_only=True)
class PlannedBudget:
    """One budget a committee may choose, and its noise."""

    epsilon: float
    """ε."""
    rho: float
    """The zero-concentrated cost of all acts."""
    stddevs: tuple[float, ...]
    """The noise of each marginal."""


def nearby(epsilon: float) -> list[float]:
    """Budgets to compare with ε where nobody named any."""
    return [round(epsilon * factor, 10) for factor in FACTORS if epsilon * factor <= LARGEST_EPSILON]


def acts_under(
    schema: Schema, workload: Workload, settled: Budget, select: Selection | None, max_rows_per_unit: int
) -> tuple[Act, ...]:
    """The private acts under a budget; a budget that cannot be kept is refused by its name."""
    try:
        return planned_acts(schema, workload, settled, select, max_rows_per_unit)
    except BudgetError as error:
        raise BudgetError(f"With epsilon {settled.epsilon:g}: {error}") from None


def noise_of(acts: Sequence[Act], required: int) -> tuple[float, ...]:
    """The noise of the required marginals; that of the chosen ones comes after it."""
    measuring = next(act for act in acts if act.name == MEASURE)
    return measuring.loss.stddevs[:required]


def planned_act(act: Act) -> PlannedAct:
    """An act as a plan tells it."""
    return PlannedAct(name=act.name, share=act.share, rho=act.loss.rho, detail=act.detail)


def planned_budget(epsilon: float, acts: Sequence[Act], required: int) -> PlannedBudget:
    """A budget as a plan tells it."""
    rho = math.fsum(act.loss.rho for act in acts)
    return PlannedBudget(epsilon=epsilon, rho=rho, stddevs=noise_of(acts, required))
