"""`plan`: what a release would be like, before anything is spent. It is given no data and opens none."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from noisewise.analysis.estimates import Estimator
from noisewise.analysis.support import Support, check_support
from noisewise.errors import WorkloadError
from noisewise.planning.expected import Expected, expected_intervals
from noisewise.planning.noise import (
    PlannedAct,
    PlannedBudget,
    PlannedMarginal,
    acts_under,
    nearby,
    noise_of,
    planned_act,
    planned_budget,
)
from noisewise.planning.sizes import FitSize, possible_cells_of, refuse_large_model
from noisewise.planning.warnings import warnings_about
from noisewise.posterior.fit import Method
from noisewise.posterior.hmc import Hmc
from noisewise.privacy.budget import Budget
from noisewise.privacy.selection import Selection
from noisewise.progress import Progress, silent
from noisewise.rehearsal import Population
from noisewise.schema import Schema
from noisewise.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a data officer signs off: computed from public facts alone, no record was read."""

    table: str
    """The schema's name for the table."""
    schema_hash: str
    """SHA-256 of the schema that was planned with."""
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
    acts: tuple[PlannedAct, ...]
    """The private acts, with their shares of the budget."""
    marginals: tuple[PlannedMarginal, ...]
    """What would be measured, with the noise in each cell; what a selection will choose is not known yet."""
    budgets: tuple[PlannedBudget, ...]
    """Budgets to compare, the study's own among them."""
    size: FitSize
    """The size of the model that would be fitted."""
    support: Mapping[str, Support]
    """The intended analyses, and what of them the marginals support."""
    expected: Expected | None
    """What intervals to expect, if a population to invent rows from was named."""
    warnings: tuple[str, ...]
    """What to think about before spending anything."""

    @property
    def cells(self) -> int:
        """Cells that would be measured."""
        return sum(marginal.cells for marginal in self.marginals)

    def to_json(self) -> str:
        """Everything as JSON; the same plan gives the same text."""
        content = asdict(self) | {
            "support": {
                formula: {
                    "supported": one.supported,
                    "relations": [
                        {"columns": list(relation.columns), "standing": relation.standing.value}
                        for relation in one.relations
                    ],
                }
                for formula, one in self.support.items()
            }
        }
        return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

    def to_html(self) -> str:
        """Everything as one page for people, without scripts or network."""
        from noisewise.planning.page import page

        return page(self)

    def __str__(self) -> str:
        from noisewise.planning.text import as_text

        return as_text(self)


HASTY = Hmc(max_draws=1_000)
"""What rehearsals are fitted with by default."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """How to find out what intervals to expect: give it to `plan` as `rehearsal`."""

    population: Population
    """Where invented rows come from, such as `Uniform(schema=schema)` or `FromSample(codes=…)`."""
    datasets: int = 100
    """Synthetic datasets in each release."""
    rehearsals: int = 1
    """How many tables to invent; the lengths of intervals are taken from the middle of them."""
    seed: int = 0
    """Seed of the invented tables, the simulated noise and the fits."""
    method: Method | None = None
    """How to fit; None for chains of 1,000 draws at most: lengths of intervals need few, and the verdict is told."""


def plan(
    schema: Schema,
    rows: int,
    workload: Workload,
    budget: Budget,
    *,
    analyses: Sequence[str] | Mapping[str, Estimator] = (),
    epsilons: Sequence[float] = (),
    select: Selection | None = None,
    unit: str | None = None,
    max_rows_per_unit: int = 1,
    rehearsal: Rehearsal | None = None,
    progress: Progress = silent,
) -> Plan:
    """Say what a release would be like: noise, model size, supported analyses, what intervals to expect, warnings.

    `rows` is the public number of rows. `analyses` are formulas, checked against the marginals, or estimators by
    formula, which a `rehearsal` then runs on invented tables too; `epsilons` are budgets to compare with `budget`.
    Nothing here is given data, and nothing is spent. A workload whose model would not fit in memory is refused.

        plan(schema, 46_043, workload, Budget(epsilon=1.0), analyses=["income ~ age + race"])
    """
    settled = budget.resolved(rows)
    assert settled.delta is not None  # resolved
    size = refuse_large_model(schema, workload.marginals)
    acts = {
        epsilon: acts_under(schema, workload, Budget(epsilon, settled.delta), select, max_rows_per_unit)
        for epsilon in sorted({settled.epsilon, *(epsilons or nearby(settled.epsilon))})
    }
    noise = {epsilon: noise_of(own, len(workload.marginals)) for epsilon, own in acts.items()}
    cells = possible_cells_of(schema, workload.marginals)
    marginals = tuple(
        PlannedMarginal(columns=marginal, cells=count, stddev=stddev, average_count=rows / count)
        for marginal, count, stddev in zip(workload.marginals, cells, noise[settled.epsilon], strict=True)
    )
    support = {formula: check_support(formula, workload.marginals) for formula in analyses}
    expected = None
    if rehearsal is not None:
        if not isinstance(analyses, Mapping):
            raise WorkloadError("A rehearsal runs the analyses: give them as estimators by formula, {formula: glm(…)}.")
        expected = expected_intervals(
            rehearsal.population,
            schema,
            rows,
            workload.marginals,
            noise,
            analyses,
            datasets=rehearsal.datasets,
            rehearsals=rehearsal.rehearsals,
            seed=rehearsal.seed,
            method=rehearsal.method or HASTY,
            progress=progress,
        )
    return Plan(
        table=schema.name,
        schema_hash=schema.hash,
        rows=rows,
        epsilon=settled.epsilon,
        delta=settled.delta,
        unit="one row" if unit is None else f"all rows that share a value of {unit!r}",
        max_rows_per_unit=max_rows_per_unit,
        acts=tuple(map(planned_act, acts[settled.epsilon])),
        marginals=marginals,
        budgets=tuple(planned_budget(epsilon, own, len(workload.marginals)) for epsilon, own in acts.items()),
        size=size,
        support=support,
        expected=expected,
        warnings=warnings_about(marginals, size, support, select, expected),
    )
