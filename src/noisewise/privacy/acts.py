"""Which private acts a measurement consists of and what each costs: from public facts alone, before anything is drawn.

`plan` shows it to those who sign it off, and `measure` does it.
"""

import math

from noisewise.errors import BudgetError
from noisewise.privacy.budget import Budget
from noisewise.privacy.division import Part, divide
from noisewise.privacy.selection import Selection
from noisewise.privacy.statement import Act
from noisewise.schema import Schema
from noisewise.workload import Workload

EDGES = "edges"
MEASURE = "measure"
SELECT = "select"


def planned_acts(
    schema: Schema, workload: Workload, settled: Budget, select: Selection | None = None, max_rows_per_unit: int = 1
) -> tuple[Act, ...]:
    """The private acts in order, with the whole budget divided over them; `settled` must have its delta."""
    assert settled.delta is not None  # resolved
    chosen = 0 if select is None else select.choices(schema, workload.marginals)
    weights = (*workload.weighted, *(1.0,) * chosen)
    if not weights:
        raise BudgetError("There is nothing to measure. Name a marginal, an analysis, or a selection.")
    parts: dict[str, Part] = {}
    details = {MEASURE: _measuring(len(weights), chosen, max_rows_per_unit)}
    if schema.to_be_bought:
        shares = tuple(column.share for column in schema.to_be_bought)
        parts[EDGES] = Part(share=math.fsum(shares), weights=shares)
        details[EDGES] = _buying(schema)
    if select is not None and chosen:
        ways = (1.0,) * len(select.one_way(schema))
        parts[SELECT] = Part(share=select.share, weights=ways, rounds=chosen)
        details[SELECT] = _selecting(select, schema, chosen)
    left = 1 - math.fsum(part.share for part in parts.values())
    if not left > 0:
        raise BudgetError(
            f"Buying edges and choosing marginals would take {1 - left:.0%} of the budget, and leave nothing to "
            "measure with. Give them smaller shares."
        )
    parts[MEASURE] = Part(share=left, weights=weights)
    losses = divide(settled.epsilon, settled.delta, list(parts.values()), max_rows_per_unit)
    return tuple(
        Act(name=name, loss=loss, share=part.share, detail=details[name], kept=name != EDGES)
        for (name, part), loss in zip(parts.items(), losses, strict=True)
    )


def _buying(schema: Schema) -> str:
    bought = [f"{column.name} ({len(column.points) - 1} cells)" for column in schema.to_be_bought]
    return f"noisy counts on public grids, to put bin edges at quantiles: {', '.join(bought)}."


def _measuring(marginals: int, chosen: int, rows: int) -> str:
    found = f", {chosen} of them chosen by selection" if chosen else ""
    noun = "marginal" if marginals == 1 else "marginals"
    return f"{marginals} {noun}{found}; replacing one unit moves at most {2 * rows} counts of each."


def _selecting(select: Selection, schema: Schema, chosen: int) -> str:
    return (
        f"{select.name}: {len(select.one_way(schema))} one-way marginals, which enter the posterior too, and {chosen} "
        "choices by the exponential mechanism."
    )
