"""What intervals to expect: the whole release rehearsed on invented tables, for every budget on the list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from noisewise.analysis.estimates import Estimator
from noisewise.errors import AnalysisError
from noisewise.posterior.fit import Method
from noisewise.progress import Progress, silent
from noisewise.rehearsal import Population, Rehearsed, rehearse
from noisewise.schema import Schema
from noisewise.workload import Marginal

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class ExpectedTerm:
    """One term of an analysis: the length of its 95 % interval, in the middle of all rehearsals."""

    name: str
    """The term."""
    estimate: float
    """What the invented table itself gives, in the last rehearsal."""
    without_privacy: float
    """Length of the interval that the invented table itself gives."""
    lengths: tuple[float | None, ...]
    """Length of the pooled interval under each budget; None where it could not be pooled."""


@dataclass(frozen=True, kw_only=True)
class ExpectedAnalysis:
    """One analysis under every budget."""

    formula: str
    """The analysis."""
    terms: tuple[ExpectedTerm, ...]
    """Its terms."""
    failures: tuple[str, ...]
    """For each budget why the analysis could not be pooled; empty where it could."""

    def times_longer(self, budget: int) -> float | None:
        """How many times longer than without privacy its intervals are, in the middle of its terms."""
        pairs = [(term.lengths[budget], term.without_privacy) for term in self.terms]
        ratios = [length / without for length, without in pairs if length is not None and without > 0]
        return float(np.median(ratios)) if ratios else None


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What rehearsals on invented tables of the real size gave."""

    population: str
    """Where the invented rows came from."""
    rehearsals: int
    """How many tables were invented."""
    datasets: int
    """Synthetic datasets in each release."""
    epsilons: tuple[float, ...]
    """The budgets."""
    untrusted: tuple[str, ...]
    """For each budget what the posterior's verdict said against it, if anything, in the last rehearsal."""
    analyses: tuple[ExpectedAnalysis, ...]
    """The analyses."""


def expected_intervals(
    population: Population,
    schema: Schema,
    rows: int,
    marginals: Sequence[Marginal],
    noise: Mapping[float, Sequence[float]],
    analyses: Mapping[str, Estimator],
    *,
    datasets: int,
    rehearsals: int,
    seed: int,
    method: Method,
    progress: Progress = silent,
) -> Expected:
    """Rehearse under every budget of `noise`, which maps ε to the noise of each marginal."""
    done: dict[float, list[Rehearsed]] = {epsilon: [] for epsilon in noise}
    for number in range(rehearsals):
        for position, (epsilon, stddevs) in enumerate(noise.items()):
            step = number * len(noise) + position

            def told(what: str, done: int, total: int, epsilon: float = epsilon, step: int = step) -> None:
                progress(f"rehearsing epsilon {epsilon:g}: {what}", step, rehearsals * len(noise))

            told("drawing a table", 0, 0)
            rehearsed = rehearse(
                population,
                schema,
                marginals,
                stddevs,
                rows,
                analyses,
                datasets=datasets,
                seed=seed + number,
                method=method,
                progress=told,
            )
            done[epsilon].append(rehearsed)
    last = [tries[-1] for tries in done.values()]
    return Expected(
        population=population.description,
        rehearsals=rehearsals,
        datasets=datasets,
        epsilons=tuple(noise),
        untrusted=tuple(" ".join(one.verdict.reasons) for one in last),
        analyses=tuple(_analysis(formula, list(done.values())) for formula in analyses),
    )


def _analysis(formula: str, done: list[list[Rehearsed]]) -> ExpectedAnalysis:
    """Collect one analysis from the rehearsals of each budget."""
    references = [rehearsed.reference[formula] for rehearsed in done[0] if formula in rehearsed.reference]
    if not references:
        raise AnalysisError(f"On invented tables of this size: {done[0][-1].failed[formula]}")
    terms = [
        ExpectedTerm(
            name=name,
            estimate=float(references[-1].values[0, position]),
            without_privacy=float(np.median([2 * NORMAL_95 * one.variances[0, position] ** 0.5 for one in references])),
            lengths=tuple(_length(formula, name, tries) for tries in done),
        )
        for position, name in enumerate(references[-1].terms)
    ]
    failures = tuple(tries[-1].failed.get(formula, "") for tries in done)
    return ExpectedAnalysis(formula=formula, terms=tuple(terms), failures=failures)


def _length(formula: str, term: str, tries: list[Rehearsed]) -> float | None:
    pooled = [one.pooled[formula] for one in tries if formula in one.pooled]
    ends = [one.conf_int().loc[term] for one in pooled if term in one.terms]
    return float(np.median([high - low for low, high in ends])) if ends else None
