"""What a plan says in words: the same sentences on a terminal and on a page."""

from noisewise.planning.plan import Plan


def heading(plan: Plan) -> str:
    """One sentence on what is planned."""
    return (
        f"{plan.table}: {plan.rows:,} rows, epsilon {plan.epsilon:g}, delta {plan.delta:.3g}. Computed from the study, "
        "the schema and the number of rows; no record was read, and nothing was spent."
    )


def promise(plan: Plan) -> str:
    """Who would be protected."""
    rows = "" if plan.max_rows_per_unit == 1 else f", at most {plan.max_rows_per_unit} of them"
    return (
        f"The unit of protection is {plan.unit}{rows}: replacing its content by any other would change the "
        f"probability of every possible release by a factor of at most e^{plan.epsilon:g}, up to a probability of "
        f"{plan.delta:.3g}. "
        "The number of rows, the schema and the list of marginals are public."
    )


def acts(plan: Plan) -> list[str]:
    """What the budget is spent on."""
    return [f"{act.name}: {act.share:.0%} of the budget, rho {act.rho:.3g}. {act.detail}" for act in plan.acts]


def model(plan: Plan) -> list[str]:
    """How large the model would be and what a fit needs."""
    size = plan.size
    return [
        f"{size.parameters:,} parameters in tables of {size.clique_cells:,} cells; the largest table has "
        f"{size.largest_cells:,} cells and ties {', '.join(size.largest_clique)} together.",
        size.effort.sentence,
    ]


def supported(plan: Plan) -> list[str]:
    """Which analyses the marginals support."""
    return [
        f"{formula}: {'supported' if one.supported else 'not fully supported, see the warnings'}"
        for formula, one in plan.support.items()
    ]


def assumed(plan: Plan) -> str:
    """What the expected intervals rest on; empty if none were rehearsed."""
    if plan.expected is None:
        return ""
    tables = "one invented table" if plan.expected.rehearsals == 1 else f"{plan.expected.rehearsals} invented tables"
    return (
        f"Rehearsed on {tables} of {plan.rows:,} rows ({plan.expected.population}), with "
        f"{plan.expected.datasets} synthetic datasets: the real table's intervals depend on its own content."
    )
