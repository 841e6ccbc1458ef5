"""A hundred datasets of Adult's size drawn and written to Parquet: seconds, and memory by the number of datasets.

Run: python -m benchmarks.drawing. A posterior of ten two-way marginals on ten columns is fitted first, which is not
timed. Each figure comes from a process of its own, so that memory is that of the work alone. Beside it stands the same
work with the conditional distributions inverted the plain way, one binary search per row.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.adult_datasets import DATA
from benchmarks.machine import about
from noisewise import Laplace, Release, Study, fit, synthesize
from noisewise.model import sampling
from noisewise.study import measure_study
from noisewise.synthesis import write_datasets

STUDY = Path(__file__).parent.parent / "examples" / "adult" / "adult.toml"
ROWS = 46_043
SERIES = (10, 100, 400)


def make_release(folder: Path) -> None:
    """Measure and fit Adult's marginals."""
    release = Release(folder)
    measure_study(Study.load(STUDY).reading(str(DATA / "adult" / "adult.csv")), release)
    release.write_posterior(fit(release.noisy_counts(), method=Laplace(draws=max(SERIES))))


def plain(distribution: np.ndarray, given: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Invert each row's distribution function by binary search."""
    found = np.empty(len(given), np.intp)
    for level in range(len(distribution)):
        here = np.flatnonzero(given == level)
        found[here] = np.searchsorted(distribution[level], uniforms[here], side="right")
    return found


def draw(folder: Path, datasets: int, way: str) -> None:
    """Draw and write; print seconds and the growth of the largest memory in MB."""
    if way == "plain":
        sampling.invert = plain
    drawn = synthesize(Release(folder).posterior(), datasets, ROWS, seed=1, allow_untrusted=True)
    _ = drawn[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        paths = write_datasets(drawn, Path(place))
        seconds, size = time.perf_counter() - start, sum(path.stat().st_size for path in paths)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{seconds:7.2f} s   {grown:6.0f} MB more than before   {size / 1e6:6.1f} MB written")


def main() -> None:
    print(about("numpy", "pyarrow"))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "release"
        make_release(folder)
        print(f"datasets of {ROWS:,} rows and 10 columns, drawn and written\n")
        for datasets, way in [*((count, "guided") for count in SERIES), (100, "plain")]:
            print(f"{datasets:4} datasets, {way:<7}", end=" ", flush=True)
            command = [sys.executable, "-m", "benchmarks.drawing", str(folder), str(datasets), way]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    else:
        main()
