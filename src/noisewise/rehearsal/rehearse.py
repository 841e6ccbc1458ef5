"""One release from beginning to end on an invented table, with the same analyses on the table itself beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from noisewise.analysis.analyze import analyze
from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.pooled import Pooled
from noisewise.errors import AnalysisError
from noisewise.posterior.fit import Method, fit
from noisewise.posterior.result import Verdict
from noisewise.progress import Progress, silent
from noisewise.rehearsal.counts import rehearsed_counts
from noisewise.rehearsal.population import Population
from noisewise.schema import Schema
from noisewise.synthesis import synthesize
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsed:
    """What one rehearsal gave."""

    pooled: Mapping[str, Pooled]
    """The analyses of the synthetic datasets, by name; those that could not be pooled are missing."""
    failed: Mapping[str, str]
    """Why the others could not be pooled."""
    reference: Mapping[str, Estimates]
    """The same analyses on the invented table itself: what one would get without privacy."""
    verdict: Verdict
    """Whether the posterior was to be trusted."""


def rehearse(
    population: Population,
    schema: Schema,
    marginals: Sequence[Marginal],
    stddevs: Sequence[float],
    rows: int,
    analyses: Mapping[str, Estimator],
    *,
    datasets: int = 100,
    dataset_rows: int | None = None,
    seed: int = 0,
    method: Method | None = None,
    progress: Progress = silent,
) -> Rehearsed:
    """Draw a table of `rows` rows, count it with simulated noise, fit, synthesize, analyze and pool.

    The same seed gives the same table and the same noise pattern whatever the size of the noise, so that budgets
    compared with one seed differ by their noise alone. `dataset_rows` are those of each synthetic dataset, by default
    as many as the table has.
    """
    stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(2,))))
    codes = population.draw(rows, stream)
    noisy_counts = rehearsed_counts(codes, schema, marginals, stddevs, stream)
    posterior = fit(noisy_counts, method, seed=seed, progress=progress)
    drawn = synthesize(posterior, datasets, dataset_rows, seed=seed, allow_untrusted=True)
    table = schema.decode(codes, stream)
    pooled, failed, reference = {}, {}, {}
    for name, estimator in analyses.items():
        try:
            reference[name] = estimator.fit([table])
            pooled[name] = analyze(drawn, estimator)
        except AnalysisError as error:
            failed[name] = str(error)
    return Rehearsed(pooled=pooled, failed=failed, reference=reference, verdict=posterior.verdict)
