"""`plan`: what a release would be like, before anything is spent. It is given no data and opens none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from noisewise.analysis.support import Support, check_support
from noisewise.errors import BudgetError
from noisewise.planning.sizes import FitSize, fit_size
from noisewise.privacy.accounting import PrivacyLoss, calibrate
from noisewise.privacy.budget import Budget
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
    """Number of cells."""
    stddev: float
    """Standard deviation of the noise in every cell."""
    average_count: float
    """Rows per cell, on average."""

    @property
    def noise_share(self) -> float:
        """The noise relative to the average count."""
        return self.stddev / self.average_count


@dataclass(frozen=True, kw_only=True)
class PlannedBudget:
    """One budget a committee may choose, and its noise."""

    epsilon: float
    """ε."""
    rho: float
    """The zero-concentrated cost."""
    stddevs: tuple[float, ...]
    """The noise of each marginal."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a data officer signs off: computed from public facts alone, no record was read."""

    table: str
    """The schema's name for the table."""
    rows: int
    """The public number of rows that was assumed."""
    epsilon: float
    """ε of the release."""
    delta: float
    """δ of the release."""
    unit: str
    """What one unit of protection is."""
    max_rows_per_unit: int
    """How many rows one unit contributes at the most."""
    marginals: tuple[PlannedMarginal, ...]
    """What would be measured, with the noise in each cell."""
    budgets: tuple[PlannedBudget, ...]
    """Budgets to compare, the study's own among them."""
    size: FitSize
    """The size of the model that would be fitted."""
    support: Mapping[str, Support]
    """The intended analyses, and what of them the marginals support."""
    warnings: tuple[str, ...]
    """What to think about before spending anything."""

    @property
    def cells(self) -> int:
        """Cells that would be measured."""
        return sum(marginal.cells for marginal in self.marginals)


def plan(
    schema: Schema,
    rows: int,
    workload: Workload,
    budget: Budget,
    *,
    analyses: Sequence[str] = (),
    epsilons: Sequence[float] = (),
    unit: str | None = None,
    max_rows_per_unit: int = 1,
) -> Plan:
    """Say what a release would be like: noise, model size, supported analyses, warnings.

    `rows` is the public number of rows. `analyses` are formulas, checked against the marginals; `epsilons` are
    budgets to compare with `budget`. Nothing here is given data, and nothing is spent.

        plan(schema, 46_043, workload, Budget(epsilon=1.0), analyses=["income ~ age + race"])
    """
    settled = budget.resolved(rows)
    assert settled.delta is not None  # resolved
    budgets = tuple(
        _planned_budget(epsilon, settled.delta, len(workload.marginals), max_rows_per_unit)
        for epsilon in sorted({settled.epsilon, *(epsilons or _nearby(settled.epsilon))})
    )
    own = next(one for one in budgets if one.epsilon == settled.epsilon)
    marginals = tuple(
        _planned_marginal(schema, rows, marginal, stddev)
        for marginal, stddev in zip(workload.marginals, own.stddevs, strict=True)
    )
    size = fit_size(schema, workload.marginals)
    support = {formula: check_support(formula, workload.marginals) for formula in analyses}
    return Plan(
        table=schema.name,
        rows=rows,
        epsilon=settled.epsilon,
        delta=settled.delta,
        unit="one row" if unit is None else f"all rows that share a value of {unit!r}",
        max_rows_per_unit=max_rows_per_unit,
        marginals=marginals,
        budgets=budgets,
        size=size,
        support=support,
        warnings=(*_about_noise(marginals), *_about_size(size), *_about_support(support)),
    )


def _nearby(epsilon: float) -> list[float]:
    return [round(epsilon * factor, 10) for factor in FACTORS if epsilon * factor <= LARGEST_EPSILON]


def _planned_budget(epsilon: float, delta: float, marginals: int, max_rows_per_unit: int) -> PlannedBudget:
    try:
        stddevs = calibrate(epsilon, delta, [1.0] * marginals, max_rows_per_unit)
    except BudgetError as error:
        raise BudgetError(f"With epsilon {epsilon:g}: {error}") from None
    loss = PrivacyLoss(stddevs=stddevs, max_rows_per_unit=max_rows_per_unit)
    return PlannedBudget(epsilon=epsilon, rho=loss.rho, stddevs=stddevs)


def _planned_marginal(schema: Schema, rows: int, marginal: Marginal, stddev: float) -> PlannedMarginal:
    cells = 1
    for size in schema.shape(marginal):
        cells *= size
    return PlannedMarginal(columns=marginal, cells=cells, stddev=stddev, average_count=rows / cells)


def _about_noise(marginals: Sequence[PlannedMarginal]) -> list[str]:
    lost = [marginal for marginal in marginals if marginal.noise_share > 1]
    return [
        f"{' × '.join(marginal.columns)}: {marginal.average_count:,.3g} rows per cell on average and noise of "
        f"{marginal.stddev:,.3g}: most of its cells will be lost in the noise. Declare fewer levels, or leave it out."
        for marginal in lost
    ]


def _about_size(size: FitSize) -> list[str]:
    if not size.fits:
        return [
            f"The model has tables of {size.clique_cells:,} cells and would not fit in memory; `measure` will refuse. "
            f"The largest ties {list(size.largest_clique)} together. {size.advice}".rstrip()
        ]
    return [f"The marginals close rings. {size.advice}"] if size.advice and size.clique_cells > 100_000 else []


def _about_support(support: Mapping[str, Support]) -> list[str]:
    return [f"{formula}: {relation.sentence}" for formula, one in support.items() for relation in one.gaps]
