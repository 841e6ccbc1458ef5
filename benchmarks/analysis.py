"""A hundred logistic regressions on Adult: distinct rows with counts against a loop over statsmodels.

Run: python -m benchmarks.analysis [repeats]. Both sides read the same 100 Parquet files of 46,043 rows, evaluate the
same formula and end with coefficients and covariances; one thread each. The loop's ridge with bootstrap is timed on
some of its 5,000 fits and scaled up, which is said. Differences are measured too: of the plain fits to statsmodels' on
full rows, of some ridge fits to Newton's method on the rows of the same resamples.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import statsmodels.api as sm
from formulaic import model_matrix

from benchmarks.adult_datasets import adult_datasets, table_to_pandas
from benchmarks.machine import about
from noisewise.analysis import RidgeBootstrap, analyze, logit
from noisewise.analysis.formulas import designs, parse
from noisewise.analysis.glm import problem_of
from noisewise.analysis.irls import fit_many
from noisewise.analysis.rows import weighted_rows

FORMULA = "income ~ age + race + gender"
DATASETS, RESAMPLES = 100, 50
SAMPLED = 40


def seconds(work: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Times of repeats after one warm-up, and the last result."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return times, result


def rows_of(table: Any) -> tuple[np.ndarray, np.ndarray]:
    """Design matrix and outcome of one dataset, row by row."""
    frame = table_to_pandas(table)
    return np.asarray(model_matrix(FORMULA.split("~")[1], frame), float), frame["income"].cat.codes.to_numpy(float)


def loop(datasets: Any, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
    """Fit every dataset on its rows with statsmodels."""
    values, covariances = [], []
    for table in datasets:
        matrix, outcome = rows_of(table)
        fit = sm.GLM(outcome, matrix, family=sm.families.Binomial()).fit(**settings)
        values.append(fit.params)
        covariances.append(fit.cov_params())
    return np.stack(values), np.stack(covariances)


def loop_of_bootstraps(table: Any, fits: int) -> np.ndarray:
    """Some of the loop's bootstrap fits on one dataset; a plain fit stands for one with a ridge, which costs more."""
    matrix, outcome = rows_of(table)
    random = np.random.default_rng(0)
    chosen = [random.integers(0, len(outcome), len(outcome)) for _ in range(fits)]
    return np.stack([sm.GLM(outcome[i], matrix[i], family=sm.families.Binomial()).fit().params for i in chosen])


def newton_on_rows(matrix: np.ndarray, outcome: np.ndarray, penalty: float) -> np.ndarray:
    """A logistic regression with a ridge, row by row, until it no longer moves."""
    values = np.zeros(matrix.shape[1])
    for _ in range(100):
        mean = 1 / (1 + np.exp(-matrix @ values))
        gradient = matrix.T @ (outcome - mean) / len(outcome) - penalty * values
        curvature = (matrix * (mean * (1 - mean))[:, None]).T @ matrix / len(outcome) + penalty * np.eye(len(values))
        step = np.linalg.solve(curvature, gradient)
        values += step
        if np.abs(step).max() < 1e-13:
            break
    return values


def difference_of_ridge_fits(datasets: Any, fits: int) -> float:
    """Largest relative difference between fits on counts and fits on rows, for the same resamples of one dataset."""
    parsed = parse(FORMULA)
    design = designs(parsed, weighted_rows(datasets[:1], parsed.columns))[0][0]
    counts = np.random.default_rng(1).multinomial(datasets.rows, design.counts[0] / datasets.rows, size=fits)
    ridge = RidgeBootstrap()
    problem = problem_of(replace(design, counts=counts.astype(float)), sm.families.Binomial())
    ours = fit_many(replace(problem, ridge=ridge.penalty)).values
    written_out = [np.repeat(np.arange(len(design.matrix)), one) for one in counts]
    rows = [newton_on_rows(design.matrix[i], design.outcome[i], ridge.penalty) for i in written_out]
    return float(np.abs(ours / np.stack(rows) - 1).max())


def show(name: str, times: list[float], note: str = "") -> None:
    print(f"{name:<44} {statistics.median(times):9.2f} s   {min(times):.2f} to {max(times):.2f}   {note}")


def main(repeats: int) -> None:
    print(about("numpy", "pyarrow", "statsmodels"))
    with tempfile.TemporaryDirectory() as folder:
        datasets = adult_datasets(Path(folder), DATASETS)
        print(f"{len(datasets)} datasets of {datasets.rows:,} rows; {FORMULA}; {repeats} repeats after a warm-up\n")
        ours, pooled = seconds(lambda: analyze(datasets, logit(FORMULA)), repeats)
        show("logistic, distinct rows", ours)
        theirs, _ = seconds(lambda: loop(datasets), 1)
        show("logistic, loop over statsmodels", theirs, f"ratio {theirs[0] / statistics.median(ours):.0f}")
        values, covariances = loop(datasets, tol_criterion="params", tol=1e-13)
        difference = np.abs(pooled.estimates.values / values - 1).max()
        unit = np.sqrt(np.einsum("dii,djj->dij", covariances, covariances))
        apart = np.abs((pooled.estimates.covariances - covariances) / unit).max()
        print(f"largest relative difference of coefficients {difference:.1e}, of covariances {apart:.1e}\n")
        ridge, _ = seconds(lambda: analyze(datasets, logit(FORMULA, RidgeBootstrap(resamples=RESAMPLES))), repeats)
        show(f"ridge, {DATASETS * RESAMPLES:,} bootstrap fits, distinct rows", ridge)
        some, _ = seconds(lambda: loop_of_bootstraps(datasets[0], SAMPLED), 1)
        scaled = [one * DATASETS * RESAMPLES / SAMPLED for one in some]
        show(
            "the same as a loop over statsmodels",
            scaled,
            f"from {SAMPLED} fits; ratio {scaled[0] / statistics.median(ridge):.0f}",
        )
        print(f"largest relative difference of {SAMPLED} ridge fits {difference_of_ridge_fits(datasets, SAMPLED):.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
