"""How the posterior's gradient grows: trees of 10 to 300 columns of 8 levels, and grids of width 1 to 4.

Run: python -m benchmarks.growth. Processor seconds of one process; the slope is that of a straight line through the
logarithms of time per gradient against clique cells.
"""

import time

import numpy as np

from noisewise.model.maxent import MaxEnt
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.density import Density
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.problem import NormalPrior, Problem

ROWS, STDDEV, CHAINS, REPEATS = 50_000, 50.0, 8, 5


def tree(columns: int) -> MaxEnt:
    random = np.random.default_rng(0)
    return MaxEnt.of((8,) * columns, [(int(random.integers(0, i)), i) for i in range(1, columns)])


def grid(width: int) -> MaxEnt:
    """Columns of 4 levels in `width` lines of 6, neighbours measured together."""
    across = [(line * 6 + i, line * 6 + i + 1) for line in range(width) for i in range(5)]
    down = [(line * 6 + i, line * 6 + i + 6) for line in range(width - 1) for i in range(6)]
    return MaxEnt.of((4,) * (6 * width), across + down)


def seconds(model: MaxEnt) -> tuple[float, float, int]:
    """Of preparing, and of one gradient; and the dimensions."""
    random = np.random.default_rng(1)
    start = time.process_time()
    expected = ROWS * model.probabilities(random.normal(0, 0.5, model.parameters))
    noisy = np.rint(expected + random.normal(0, STDDEV, len(expected)))
    variance, seen = np.full(len(noisy), STDDEV**2), np.ones(len(noisy), bool)
    problem = Problem(model=model, noisy=noisy, noise_variance=variance, observed=seen, rows=ROWS, prior=NormalPrior())
    arrays = Arrays.of(problem)
    density = Density(arrays, monotone_maps(arrays))
    prepared = time.process_time() - start
    points = random.normal(0, 0.5, (density.dimensions, CHAINS))
    density(points)
    start = time.process_time()
    for _ in range(REPEATS):
        density(points)
    return prepared, (time.process_time() - start) / (REPEATS * CHAINS), density.dimensions


def show(title: str, models: dict[str, MaxEnt]) -> None:
    print(f"\n{title:<14}{'parameters':>12}{'clique cells':>14}{'dimensions':>12}{'prepare s':>11}{'gradient ms':>13}")
    cells, times = [], []
    for name, model in models.items():
        prepared, gradient, dimensions = seconds(model)
        cells.append(model.tree.cells)
        times.append(gradient)
        figures = f"{model.parameters:>12,}{model.tree.cells:>14,}{dimensions:>12,}{prepared:>11.2f}"
        print(f"{name:<14}{figures}{gradient * 1e3:>13.3f}")
    print(f"slope {np.polyfit(np.log(cells), np.log(times), 1)[0]:.2f}")


if __name__ == "__main__":
    show("tree, columns", {str(k): tree(k) for k in (10, 30, 100, 300)})
    show("grid, width", {str(k): grid(k) for k in (1, 2, 3, 4)})
