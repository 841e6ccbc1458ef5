"""The built-in example: a known process, so that the truth is there to compare with.

Two fair coins x1 and x2, and x3 with log odds 1·x1 + 0·x2 (the toy of Räisä et al. 2023). The table goes through
every stage; the analyst's logistic regression is run as it should be, and as if one synthetic dataset were real.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisewise.analysis.analyze import analyze
from noisewise.analysis.glm import glm
from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Release
from noisewise.privacy.budget import Budget
from noisewise.privacy.measure import measure
from noisewise.progress import Progress, silent
from noisewise.reporting.report import report
from noisewise.schema import Numeric, Schema
from noisewise.study import PosteriorSection, fit_release
from noisewise.synthesis import synthesize
from noisewise.workload import Workload

TRUTH = {"x1": 1.0, "x2": 0.0}
FORMULA = "x3 ~ 0 + x1 + x2"
FAMILY = "binomial"
ROWS = 2000


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its 95 % interval."""

    estimate: float
    """The estimate."""
    low: float
    """Lower end."""
    high: float
    """Upper end."""

    def covers(self, value: float) -> bool:
        """Whether the interval contains a value."""
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the demo shows, by term."""

    pooled: dict[str, Interval]
    """Intervals of noisewise."""
    single: dict[str, tuple[Interval, ...]]
    """Intervals from each synthetic dataset when it is taken for real data."""


def demo_schema() -> Schema:
    """Three columns that are 0 or 1."""
    columns = [Numeric(name=name, edges=(-0.5, 0.5, 1.5), integer=True) for name in ("x1", "x2", "x3")]
    return Schema(name="demo", column=tuple(columns))


def demo_table(seed: int = 0, rows: int = ROWS) -> pa.Table:
    """A confidential table drawn from the known process."""
    random = np.random.default_rng(seed)
    x1, x2 = random.integers(0, 2, rows), random.integers(0, 2, rows)
    probability = 1 / (1 + np.exp(-(TRUTH["x1"] * x1 + TRUTH["x2"] * x2)))
    return pa.table({"x1": x1, "x2": x2, "x3": (random.random(rows) < probability).astype(int)})


def run_demo(
    folder: str | Path, *, epsilon: float = 0.5, seed: int = 0, replace: bool = False, progress: Progress = silent
) -> tuple[Release, Comparison]:
    """Go through every stage and leave a release behind; the privacy noise is new every time.

    With `replace` a demo release that is in the folder is removed first; anything else there is not touched.
    """
    schema = demo_schema()
    workload = Workload.of(schema, [schema.names])
    release = Release(folder)
    if replace and release.exists() and release.manifest().table == schema.name:
        shutil.rmtree(release.folder)
    progress("measuring under differential privacy", 0, 0)
    noisy_counts = measure(demo_table(seed), schema, workload, Budget(epsilon=epsilon))
    release.write_noisy_counts(noisy_counts, ({"model": FAMILY, "formula": FORMULA},))
    posterior = fit_release(release, PosteriorSection(seed=seed), progress)
    datasets = synthesize(posterior, datasets=100, seed=seed)
    release.write_datasets(datasets, progress)
    progress("analysing and pooling", 0, 0)
    pooled = analyze(release.datasets(), glm(FORMULA, family=FAMILY))
    report(release, {FORMULA: pooled})
    return release, compare(pooled)


def compare(pooled: Pooled) -> Comparison:
    """Pooled intervals beside those of each dataset taken for real data."""
    ends = pooled.conf_int().to_numpy()
    values, variances = pooled.estimates.values, pooled.estimates.variances
    half = 1.959963984540054 * np.sqrt(variances)
    return Comparison(
        pooled={
            term: Interval(estimate=float(pooled.params.iloc[i]), low=float(ends[i, 0]), high=float(ends[i, 1]))
            for i, term in enumerate(pooled.terms)
        },
        single={
            term: tuple(
                Interval(estimate=float(v), low=float(v - h), high=float(v + h))
                for v, h in zip(values[:, i], half[:, i], strict=True)
            )
            for i, term in enumerate(pooled.terms)
        },
    )
