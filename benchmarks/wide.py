"""Wide tables to the verdict, and what compiling NUTS takes as columns are added.

Run: python -m benchmarks.wide. One process, one thread of linear algebra; the compilation cache is not used.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.growth import ROWS, STDDEV, tree
from benchmarks.machine import about
from noisewise import Hmc
from noisewise.model.maxent import MaxEnt
from noisewise.posterior.hmc import hmc_draws
from noisewise.posterior.problem import NormalPrior, Problem
from noisewise.posterior.settle import settle
from noisewise.progress import silent


def star(columns: int) -> MaxEnt:
    """Columns of 8 levels, each measured with the first."""
    return MaxEnt.of((8,) * columns, [(0, i) for i in range(1, columns)])


def problem_of(model: MaxEnt, rows: int = ROWS, stddev: float = STDDEV, spread: float = 0.5) -> Problem:
    random = np.random.default_rng(1)
    expected = rows * model.probabilities(random.normal(0, spread, model.parameters))
    noisy = np.rint(expected + random.normal(0, stddev, len(expected)))
    variance, seen = np.full(len(noisy), stddev**2), np.ones(len(noisy), bool)
    return Problem(model=model, noisy=noisy, noise_variance=variance, observed=seen, rows=rows, prior=NormalPrior())


def nine_columns() -> Problem:
    """The shape of the census experiment: 320,754 rows, three-way marginals, noise of ε = 1."""
    from experiments.census import MARGINALS, schema

    table = schema("nine columns")
    marginals = [tuple(sorted(table.index(name) for name in marginal)) for marginal in MARGINALS]
    return problem_of(MaxEnt.of(table.sizes, marginals), rows=320_754, stddev=23.29, spread=1.0)


def fitted(name: str, problem: Problem) -> None:
    wall, start = time.perf_counter(), time.process_time()
    _, verdict = hmc_draws(problem, Hmc(), 0, silent)
    used, wall = time.process_time() - start, time.perf_counter() - wall
    n = verdict.numbers
    print(
        f"{name:<20}{problem.model.parameters:>8,}{problem.model.tree.cells:>9,}{wall:>8.1f}{used:>8.1f}"
        f"{n['draws']:>7.0f}{n['rhat']:>8.3f}{n['ess']:>7.0f}   {'trusted' if verdict.trusted else 'not trusted'}",
        flush=True,
    )


def compiled(name: str, model: MaxEnt) -> None:
    import jax

    from noisewise.posterior.sampler import At, Space, run_chains
    from noisewise.posterior.target import target_data

    with np.errstate(all="ignore"), jax.enable_x64(True):
        settled = settle(problem_of(model), 4, 0.8, np.random.default_rng(0), silent)
        state = replace(settled.chains, root=np.ones(len(settled.chains.v)))  # a diagonal metric at every size
        data, shape = target_data(settled.arrays)
        at = At(state.v.T, state.value, state.gradient.T)
        space: Any = Space(data, settled.density.maps.coefficients, state.root)
        start = time.perf_counter()
        lowered = run_chains.lower(jax.random.split(jax.random.key(0), 4), at, 0.1, space, shape, 25)
        traced = time.perf_counter()
        lowered.compile()
        done = time.perf_counter()
    print(f"{name:<20}{len(settled.arrays.layout.levels):>8}{traced - start:>9.1f}{done - traced:>8.1f}", flush=True)


def main() -> None:
    print(about("numpy", "scipy", "jax", "blackjax"))
    print(f"\n{'Hmc':<20}{'params':>8}{'cells':>9}{'wall':>8}{'cpu':>8}{'draws':>7}{'R-hat':>8}{'ESS':>7}")
    fitted("nine columns", nine_columns())
    for columns in (10, 30, 100):
        fitted(f"tree of {columns}", problem_of(tree(columns)))
    print(f"\n{'Nuts, seconds':<20}{'levels':>8}{'tracing':>9}{'compile':>8}")
    for columns in (10, 30, 100):
        compiled(f"star of {columns}", star(columns))
    for columns in (10, 30, 100):
        compiled(f"tree of {columns}", tree(columns))


if __name__ == "__main__":
    main()
