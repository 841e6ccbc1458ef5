"""What to think about before spending anything."""

from collections.abc import Mapping, Sequence

from noisewise.analysis.support import Support
from noisewise.planning.expected import Expected
from noisewise.planning.noise import PlannedMarginal
from noisewise.planning.sizes import FitSize
from noisewise.privacy.selection import Selection

LARGE = 100_000
"""Clique cells from which it is worth saying what makes a model large."""


def warnings_about(
    marginals: Sequence[PlannedMarginal],
    size: FitSize,
    support: Mapping[str, Support],
    select: Selection | None,
    expected: Expected | None,
) -> tuple[str, ...]:
    """One sentence or two for each thing that somebody may want to change."""
    return (
        *_about_noise(marginals),
        *_about_size(size),
        *_about_support(support),
        *_about_selection(select, expected),
        *_about_expectations(expected),
    )


def _about_noise(marginals: Sequence[PlannedMarginal]) -> list[str]:
    lost = [marginal for marginal in marginals if marginal.noise_share > 1]
    return [
        f"{' × '.join(marginal.columns)}: {marginal.average_count:,.3g} rows per cell on average and noise of "
        f"{marginal.stddev:,.3g}: most of its cells will be lost in the noise. Declare fewer levels, or leave it out."
        for marginal in lost
    ]


def _about_size(size: FitSize) -> list[str]:
    return [f"The marginals close rings. {size.advice}"] if size.advice and size.clique_cells > LARGE else []


def _about_support(support: Mapping[str, Support]) -> list[str]:
    return [f"{formula}: {relation.sentence}" for formula, one in support.items() for relation in one.gaps]


def _about_selection(select: Selection | None, expected: Expected | None) -> list[str]:
    if select is None:
        return []
    told = (
        f"What {select.name} will choose is not known before it looks at the table: the model's size is that of the "
        f"required marginals alone, and may grow to {select.max_cells:,} cells."
    )
    also = " The expected intervals are those of the required marginals alone." if expected is not None else ""
    return [told + also]


def _about_expectations(expected: Expected | None) -> list[str]:
    if expected is None:
        return []
    found = []
    untrusted = [(e, reasons) for e, reasons in zip(expected.epsilons, expected.untrusted, strict=True) if reasons]
    if untrusted:
        found.append(
            f"The posterior of the rehearsal was not to be trusted with epsilon {_listed(untrusted)}: the intervals "
            f"expected there are guesses. {untrusted[-1][1]}"
        )
    for analysis in expected.analyses:
        failed = [(e, why) for e, why in zip(expected.epsilons, analysis.failures, strict=True) if why]
        if failed:
            found.append(f"{analysis.formula} could not be pooled with epsilon {_listed(failed)}: {failed[-1][1]}")
    return found


def _listed(budgets: Sequence[tuple[float, str]]) -> str:
    return ", ".join(f"{epsilon:g}" for epsilon, _ in budgets)
