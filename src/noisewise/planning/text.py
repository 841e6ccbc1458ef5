"""A plan as text for a terminal."""

from noisewise.planning import sentences, tables
from noisewise.planning.plan import Plan
from noisewise.planning.tables import Table


def as_text(plan: Plan) -> str:
    """The whole plan."""
    parts = [
        f"Plan for {sentences.heading(plan)}",
        sentences.promise(plan),
        _listed("Private acts", sentences.acts(plan)),
    ]
    parts += [_laid_out(tables.measured(plan)), _listed("The model", sentences.model(plan))]
    if plan.support:
        parts.append(_listed("Analyses", sentences.supported(plan)))
    parts.append(_laid_out(tables.budgets(plan)))
    parts += map(_laid_out, tables.expectations(plan))
    if plan.expected is not None:
        parts.append(sentences.assumed(plan))
    parts.append(_listed("Warnings", plan.warnings) if plan.warnings else "No warnings.")
    return "\n\n".join(parts)


def _listed(title: str, lines: list[str] | tuple[str, ...]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _laid_out(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]
    lines = [
        "  "
        + "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in (table.head, *table.rows)
    ]
    return "\n".join([table.title, *(line.rstrip() for line in lines)])
