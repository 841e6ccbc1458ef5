"""A hundred datasets of Adult's size drawn and written to Parquet: seconds, and memory by the number of datasets.

Run: python -m benchmarks.drawing [RELEASE]. Adult's schema with the ten two-way marginals of the example; without a
release the posterior's draws are invented, since neither time nor memory depends on what they say but a little. Each
figure comes from a process of its own, so that memory is that of the work alone. Beside it stands the same work with
the conditional distributions inverted the plain way, one binary search per row.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import about
from noisewise import NoisyCounts, Posterior, Study, read_release, synthesize
from noisewise.model import sampling
from noisewise.noisy_counts import Measurement, PrivacyStatement, PrivacyStep
from noisewise.posterior.result import FitRecord, Verdict, model_of
from noisewise.synthesis import write_datasets

STUDY = Path(__file__).parent.parent / "examples" / "adult" / "adult.toml"
ROWS = 46_043
SERIES = (10, 100, 400)


def invented() -> Posterior:
    """Random draws for the model of the example's marginals."""
    study = Study.load(STUDY)
    schema = study.load_schema()
    measurements = tuple(
        Measurement(marginal=marginal, values=np.zeros(schema.shape(marginal), np.int64), stddev=1.0)
        for marginal in study.load_workload(schema).marginals
    )
    step = PrivacyStep(name="measure", mechanism="none", rho=0.1)
    statement = PrivacyStatement(epsilon=1.0, delta=1e-6, rho=0.1, accountant="none", steps=(step,))
    counts = NoisyCounts(schema=schema, rows=ROWS, measurements=measurements, privacy=statement)
    theta = np.random.default_rng(0).normal(0, 0.7, (1, max(SERIES), model_of(counts).parameters))
    return Posterior(
        noisy_counts=counts,
        theta=theta,
        verdict=Verdict(trusted=True, summary="invented", reasons=()),
        record=FitRecord(method="none", prior_stddev=10.0, cells="all", seed=0),
    )


def plain(distribution: np.ndarray, given: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Invert each row's distribution function by binary search."""
    found = np.empty(len(given), np.intp)
    for level in range(len(distribution)):
        here = np.flatnonzero(given == level)
        found[here] = np.searchsorted(distribution[level], uniforms[here], side="right")
    return found


def draw(release: str, datasets: int, way: str) -> None:
    """Draw and write; print seconds and the growth of the largest memory in MB."""
    if way == "plain":
        sampling.invert = plain
    posterior = read_release(release).posterior() if release else invented()
    drawn = synthesize(posterior, datasets, ROWS, seed=1, allow_untrusted=True)
    _ = drawn[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        paths = write_datasets(drawn, Path(place))
        seconds, size = time.perf_counter() - start, sum(path.stat().st_size for path in paths)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{seconds:7.2f} s   {grown:6.0f} MB more than before   {size / 1e6:6.1f} MB written")


def main(release: str) -> None:
    print(about("numpy", "pyarrow"))
    print(f"datasets of {ROWS:,} rows and 10 columns, drawn and written\n")
    for datasets, way in [*((count, "guided") for count in SERIES), (SERIES[1], "plain")]:
        print(f"{datasets:4} datasets, {way:<7}", end=" ", flush=True)
        subprocess.run([sys.executable, "-m", "benchmarks.drawing", release, str(datasets), way], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        draw(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "")
