"""Datasets of 10 million rows and 20 columns on one machine: time and peak memory of drawing and of an analysis."""

import argparse
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement
from noisewise.posterior.result import FitRecord, Posterior, Verdict, model_of
from noisewise.schema import Boolean, Categorical, Numeric, Schema
from noisewise.synthesis import DrawnDatasets, synthesize, write_datasets
from noisewise.synthesis.writing import stored_partitions

SIZES = (2, 12, 5, 16, 40, 3, 7, 9, 24, 4, 6, 10, 2, 15, 8, 20)
COLUMNS = (
    *(Categorical(name=f"c{i}", levels=tuple(f"level {j}" for j in range(size))) for i, size in enumerate(SIZES)),
    Numeric(name="age", edges=tuple(range(0, 110, 10)), integer=True, released_as="uniform"),
    Numeric(name="income", edges=(0, 1e3, 1e4, 1e5), released_as="uniform", missing="category"),
    Boolean(name="smoker"),
    Boolean(name="outcome"),
)


def datasets(count: int, rows: int) -> DrawnDatasets:
    """A chain of pairs, with parameters by hand: what the fit was costs nothing here."""
    schema = Schema(column=COLUMNS)
    pairs = list(zip(schema.names, schema.names[1:], strict=False))
    measured = tuple(Measurement(marginal=p, values=np.zeros(schema.shape(p), np.int64), stddev=25.0) for p in pairs)
    promise = PrivacyStatement(epsilon=1.0, delta=1e-14, rho=0.01, accountant="none: a benchmark", steps=())
    counts = NoisyCounts(schema=schema, rows=rows, measurements=measured, privacy=promise)
    theta = np.random.default_rng(0).normal(0, 0.3, (1, count, model_of(counts).parameters))
    verdict = Verdict(trusted=True, summary="By hand.")
    record = FitRecord(method="by hand", prior_stddev=10.0, cells="all", seed=0)
    return synthesize(Posterior(noisy_counts=counts, theta=theta, verdict=verdict, record=record), count)


def draw(count: int, rows: int, folder: Path) -> None:
    write_datasets(datasets(count, rows), folder)


def regression(count: int, rows: int, folder: Path) -> None:
    from noisewise import analyze, glm

    stored = replace(stored_partitions(datasets(count, rows), folder), paths=tuple(sorted(folder.glob("*.parquet"))))
    analyze(stored, glm("outcome ~ smoker + c1 + c3", family="binomial"))


def measured(work: str, count: int, rows: int, folder: Path) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak resident memory in GB of a piece of work in a process of its own."""
    code = f"from benchmarks import synthesis; synthesis.report({work!r}, {count}, {rows}, {str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    seconds, processor, peak = map(float, done.stdout.split())
    return seconds, processor, peak


def report(work: str, count: int, rows: int, folder: str) -> None:
    start, used = time.perf_counter(), time.process_time()
    {"draw": draw, "regression": regression}[work](count, rows, Path(folder))
    print(
        time.perf_counter() - start,
        time.process_time() - used,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--datasets", type=int, default=4)
    options = parser.parse_args()
    versions = f"Python {platform.python_version()}, NumPy {version('numpy')}, PyArrow {version('pyarrow')}"
    print(f"{len(COLUMNS)} columns; {versions}")
    for count in (2, options.datasets):
        with tempfile.TemporaryDirectory() as folder:
            for work in ("draw", "regression"):
                seconds, used, peak = measured(work, count, options.rows, Path(folder))
                rate = f"{count * options.rows / seconds / 1e6:5.1f} million rows/s"
                times = f"{seconds:6.1f} s  {used:6.1f} processor s"
                print(f"{count} × {options.rows:,} rows  {work:10} {times}  {rate}  {peak:.2f} GB", flush=True)


if __name__ == "__main__":
    main()
