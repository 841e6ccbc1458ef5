"""The tables of a plan as text, for a terminal and for a page alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from noisewise.planning.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts; the first column is to the left, the others are numbers."""

    title: str
    """What it shows."""
    head: tuple[str, ...]
    """The columns' titles."""
    rows: tuple[tuple[str, ...], ...]
    """The cells."""


def number(value: float | None, digits: int = 3) -> str:
    """A number with some significant digits and thousands apart; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def measured(plan: Plan) -> Table:
    """The marginals with their noise."""
    return Table(
        title=f"What would be measured: {len(plan.marginals)} marginals, {plan.cells:,} cells",
        head=("columns counted together", "cells", "noise per count", "rows per cell", "noise / rows"),
        rows=tuple(
            (
                " × ".join(one.columns),
                f"{one.cells:,}",
                number(one.stddev),
                number(one.average_count),
                number(one.noise_share, 2),
            )
            for one in plan.marginals
        ),
    )


def budgets(plan: Plan) -> Table:
    """The budgets to compare: what they cost in noise and, if it was rehearsed, in the length of intervals."""
    expected = plan.expected.analyses if plan.expected is not None else ()
    head = ("epsilon", "rho", "noise per count", *(f"intervals: {one.formula}" for one in expected))
    rows = []
    for position, budget in enumerate(plan.budgets):
        own = " ←" if budget.epsilon == plan.epsilon else ""
        lengths = [one.times_longer(position) for one in expected]
        rows.append(
            (
                f"{budget.epsilon:g}{own}",
                number(budget.rho),
                _range(budget.stddevs),
                *(f"{number(length, 2)} ×" if length is not None else "–" for length in lengths),
            )
        )
    title = "Budgets to compare"
    if expected:
        title += "; how many times longer than without privacy a typical interval is"
    return Table(title=title, head=head, rows=tuple(rows))


def expectations(plan: Plan) -> tuple[Table, ...]:
    """For each analysis the length of every term's interval under every budget."""
    if plan.expected is None:
        return ()
    head = ("term", "estimate", "without privacy", *(f"ε = {epsilon:g}" for epsilon in plan.expected.epsilons))
    return tuple(
        Table(
            title=f"Length of 95 % intervals: {analysis.formula}",
            head=head,
            rows=tuple(
                (term.name, number(term.estimate), number(term.without_privacy), *map(number, term.lengths))
                for term in analysis.terms
            ),
        )
        for analysis in plan.expected.analyses
    )


def _range(stddevs: Sequence[float]) -> str:
    if not stddevs:
        return "–"
    low, high = number(min(stddevs)), number(max(stddevs))
    return low if low == high else f"{low} to {high}"
