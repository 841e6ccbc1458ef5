"""What an analyst concludes from synthetic datasets: pooled over m of them, or from the first alone as if it were real.

`m = 1` is the naive reading: the ordinary interval of one dataset. It is recorded for every method, so that pooling
itself can be left out of any of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy import stats

from experiments.experiment import Analysis
from noisewise.analysis import FullySynthetic, glm
from noisewise.analysis.estimates import Estimates
from noisewise.analysis.families import family_of
from noisewise.analysis.formulas import designs, parse
from noisewise.analysis.irls import Problem, fit_many
from noisewise.analysis.remedies import RidgeBootstrap
from noisewise.analysis.rows import weighted_rows
from noisewise.errors import AnalysisError

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))
"""Nominal levels at which coverage is looked at: 5 % to 95 %."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One estimand as read off synthetic datasets."""

    analysis: str
    """The analysis."""
    m: int
    """How many datasets were pooled; 1 for one dataset taken for real data."""
    term: str
    """The estimand."""
    estimate: float | None
    """The estimate; None if it was dropped."""
    stderr: float | None = None
    """Its standard error."""
    dof: float | None = None
    """Degrees of freedom; None for a normal interval."""
    ends: tuple[float, ...] | None = None
    """Ends of the intervals at `LEVELS`, lower then upper, where they are percentiles."""
    used: int = 1
    """Datasets that had an estimate."""
    fallback: bool = False
    """Whether the pooled variance was not positive and its fallback was used."""

    def interval(self, level: float) -> tuple[float, float] | None:
        """The interval at a level; None if the estimate was dropped."""
        if self.estimate is None:
            return None
        if self.ends is not None:
            i = LEVELS.index(level)
            return self.ends[i], self.ends[len(LEVELS) + i]
        assert self.stderr is not None
        half = stats.t.ppf((1 + level) / 2, np.inf if self.dof is None else self.dof) * self.stderr
        return self.estimate - half, self.estimate + half


def read(datasets: Sequence[pa.Table], analysis: Analysis, pools: Sequence[int], rows: int, seed: int) -> list[Reading]:
    """The naive reading of the first dataset, and the pooled ones for as many datasets as there are."""
    readings = _single(datasets[0], analysis, seed)
    if len(datasets) > 1:
        remedy = analysis.remedy
        if isinstance(remedy, RidgeBootstrap):
            remedy = RidgeBootstrap(penalty=remedy.penalty, resamples=remedy.resamples, seed=seed)
        estimates = glm(analysis.formula, analysis.family, remedy).fit(datasets)
        for m in sorted({m for m in pools if m <= len(datasets)} | {len(datasets)}):
            readings += _pooled(estimates, analysis, m, rows)
    return readings


def _pooled(estimates: Estimates, analysis: Analysis, m: int, rows: int) -> list[Reading]:
    return [_pooled_term(estimates, analysis, m, rows, number) for number in range(len(estimates.terms))]


def _pooled_term(estimates: Estimates, analysis: Analysis, m: int, rows: int, number: int) -> Reading:
    term, used = estimates.terms[number], estimates.used[:m, number]
    try:
        pooled = FullySynthetic().pool(
            estimates.values[:m, number][used], estimates.variances[:m, number][used], rows=rows, original_rows=rows
        )
    except AnalysisError:  # fewer than two datasets have the term
        return Reading(analysis=analysis.name, m=m, term=term, estimate=None, used=int(used.sum()))
    return Reading(
        analysis=analysis.name,
        m=m,
        term=term,
        estimate=pooled.estimate,
        stderr=float(np.sqrt(pooled.variance)),
        dof=float(pooled.dof) if np.isfinite(pooled.dof) else None,
        used=int(used.sum()),
        fallback=bool(pooled.fallback),
    )


def _single(dataset: pa.Table, analysis: Analysis, seed: int) -> list[Reading]:
    if isinstance(analysis.remedy, RidgeBootstrap):
        return _percentiles(dataset, analysis, analysis.remedy, seed)
    estimates = glm(analysis.formula, analysis.family, analysis.remedy).fit([dataset])
    return [
        Reading(
            analysis=analysis.name,
            m=1,
            term=term,
            estimate=float(estimates.values[0, i]) if estimates.used[0, i] else None,
            stderr=float(np.sqrt(estimates.variances[0, i])) if estimates.used[0, i] else None,
            used=int(estimates.used[0, i]),
        )
        for i, term in enumerate(estimates.terms)
    ]


def _percentiles(dataset: pa.Table, analysis: Analysis, remedy: RidgeBootstrap, seed: int) -> list[Reading]:
    """Percentile intervals of the pair bootstrap, with the ridge in every fit."""
    parsed = parse(analysis.formula)
    (design,), _, _ = designs(parsed, weighted_rows([dataset], parsed.columns), None)
    rows = int(design.counts[0].sum())
    resampled = np.random.default_rng(seed).multinomial(rows, design.counts[0] / rows, size=remedy.resamples)
    problem = Problem(
        matrix=design.matrix,
        outcome=design.outcome,
        counts=resampled.astype(float),
        rows=np.full(remedy.resamples, float(rows)),
        family=family_of(analysis.family),
        ridge=remedy.penalty,
    )
    values = fit_many(problem).values
    tails = np.array([(1 - level) / 2 for level in LEVELS])
    ends = np.quantile(values, np.concatenate([tails, 1 - tails]), axis=0)
    return [
        Reading(
            analysis=analysis.name,
            m=1,
            term=term,
            estimate=float(values[:, i].mean()),
            stderr=float(values[:, i].std(ddof=1)),
            ends=tuple(float(end) for end in ends[:, i]),
        )
        for i, term in enumerate(design.terms)
    ]
