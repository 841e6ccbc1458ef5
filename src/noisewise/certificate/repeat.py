"""One repeat of a certificate: a population with a known truth, the whole release rehearsed in it, what came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.pooled import Pooled
from noisewise.certificate.populations import Known, Stress
from noisewise.certificate.truth import Truth, truth_of
from noisewise.errors import AnalysisError
from noisewise.posterior.fit import Method
from noisewise.posterior.result import Posterior
from noisewise.rehearsal import rehearse

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Nominal levels of the intervals that are looked at; verdicts are about the last."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What every repeat is given."""

    posterior: Posterior
    """The release's posterior: where populations come from."""
    analyses: Mapping[str, Estimator]
    """The analyses by title."""
    datasets: int
    """Synthetic datasets of a rehearsal."""
    rows: int
    """Rows of each of them."""
    seed: int
    """Seed of everything."""
    method: Method | None
    """How the rehearsals are fitted."""
    stress: Stress | None
    """The associations of the stressed populations; None where everything was measured."""


def repeat(plan: Plan, number: int, stressed: bool) -> dict[str, Any]:
    """Rehearse once; the result is plain values that can be written to a file.

    Repeat `number` is the same whoever computes it and in whatever order.
    """
    counts = plan.posterior.noisy_counts
    seeds = np.random.SeedSequence(plan.seed, spawn_key=(4, int(stressed), number))
    chosen, seed = (int(word) for word in seeds.generate_state(2))
    theta = plan.posterior.draws[chosen % len(plan.posterior.draws)]
    population = Known.of(plan.posterior.model, theta)
    if stressed:
        assert plan.stress is not None
        population = plan.stress.population(theta)
    done = rehearse(
        population,
        counts.schema,
        counts.marginals,
        [measurement.stddev for measurement in counts.measurements],
        counts.rows,
        plan.analyses,
        datasets=plan.datasets,
        dataset_rows=plan.rows,
        seed=seed,
        method=plan.method,
    )
    analyses: dict[str, Any] = {}
    for title, estimator in plan.analyses.items():
        if title in done.failed:
            analyses[title] = {"failed": done.failed[title]}
            continue
        try:
            truth = truth_of(population, counts.schema, estimator, counts.rows, seed)
        except AnalysisError as error:
            analyses[title] = {"failed": f"The population itself does not determine it: {error}"}
            continue
        analyses[title] = recorded(done.pooled[title], done.reference[title], truth)
    return {"number": number, "stressed": stressed, "trusted": done.verdict.trusted, "analyses": analyses}


def recorded(pooled: Pooled, reference: Estimates, truth: Truth) -> dict[str, Any]:
    """What a certificate needs of one analysis in one rehearsal: every term's intervals and truth, as plain values."""
    from scipy.special import ndtri

    terms = []
    for position, (term, one) in enumerate(zip(pooled.terms, pooled.pooled, strict=True)):
        if term not in truth.values:
            continue
        there = reference.terms.index(term) if term in reference.terms else -1
        usable = there >= 0 and bool(reference.used[0, there])
        half = [float(ndtri((1 + level) / 2)) for level in LEVELS]
        stderr = float(np.sqrt(reference.variances[0, there])) if usable else None
        terms.append(
            {
                "term": term,
                "variables": list(pooled.estimates.variables.get(term, ())),
                "supported": None if pooled.support is None else term not in pooled.unsupported,
                "truth": truth.values[term],
                "estimate": one.estimate,
                "stderr": float(np.sqrt(one.variance)),
                "intervals": [_finite(one.reference.interval(1 - level)) for level in LEVELS],
                "reference": float(reference.values[0, there]) if usable else None,
                "halves": [factor * stderr for factor in half] if stderr is not None else None,
                "fallback": bool(one.fallback),
                "caution": bool(one.caution),
                "position": position,
            }
        )
    return {"terms": terms, "truth": truth.how}


def _finite(interval: tuple[float, float]) -> list[float]:
    """Ends that JSON can hold."""
    return [max(float(interval[0]), -1e300), min(float(interval[1]), 1e300)]
