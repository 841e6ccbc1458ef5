"""What a fit costs on the examples, beside what a plan expects: the points that the plan's estimate is made of.

Run: python -m benchmarks.effort [name ...]. Every study is measured on its table and fitted in a fresh process, with
the method that `fit` chooses; processor seconds and peak memory are the whole process's. The last line is what
`src/noisewise/planning/effort.py` is to hold.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import about
from noisewise.artifacts import Release
from noisewise.planning.sizes import fit_size
from noisewise.study import Study, measure_study

REPOSITORY = Path(__file__).parent.parent
DATA = Path(os.environ.get("NOISEWISE_DATA", REPOSITORY.parent / "shared" / "data"))
EXAMPLES = REPOSITORY / "examples"
FIT = """
import resource, sys, time
from noisewise.artifacts import Release
from noisewise.posterior.fit import fit
posterior = fit(Release(sys.argv[1]).noisy_counts())
used = time.process_time()
print(used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, posterior.verdict.trusted)
"""


def census_standin(folder: Path) -> Path:
    table = folder / "census-standin.csv"
    tree = DATA / "census1990" / "uscensus1990_chowliu_cpts_fulldata.json"
    subprocess.run([sys.executable, str(EXAMPLES / "census1990" / "make_table.py"), str(tree), str(table)], check=True)
    return table


STUDIES = {
    "adult": ("adult/adult.toml", lambda folder: DATA / "adult" / "adult.csv"),
    "sdnist": ("sdnist/sdnist.toml", lambda folder: DATA / "sdnist" / "sdnist_ma2019.csv"),
    "census1990": ("census1990/census1990.toml", census_standin),
}


def measured(name: str, folder: Path) -> tuple[int, float, int]:
    """The cells that the estimate goes by, processor seconds and bytes; prints them beside the estimate."""
    file, source = STUDIES[name]
    study, release = Study.load(EXAMPLES / file).reading(str(source(folder))), Release(folder / name)
    size = fit_size(study.load_schema(), measure_study(study, release).marginals)
    command = [sys.executable, "-c", FIT, str(release.folder)]
    used, peak, trusted = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    seconds, cells = float(used), size.effort.cells
    print(
        f"{name:<12}{cells:>7,} cells  {size.parameters:>5,} parameters  {seconds:7.1f} s, expected "
        f"{size.effort.seconds:.1f}  {int(peak) / 1e6:5.0f} MB, expected {size.effort.memory / 1e6:.0f}  "
        f"{'trusted' if trusted == 'True' else 'not trusted'}",
        flush=True,
    )
    return cells, seconds, int(peak)


def main(names: list[str]) -> None:
    print(about("numpy", "noisewise"))
    with tempfile.TemporaryDirectory() as folder:
        points = sorted(measured(name, Path(folder)) for name in names)
    print(f"MEASURED = {tuple((cells, round(seconds, 1), round(peak / 1e6)) for cells, seconds, peak in points)}")


if __name__ == "__main__":
    main(sys.argv[1:] or list(STUDIES))
