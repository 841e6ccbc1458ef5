"""What the toy's intervals should be wide, by the delta method: the yardstick for its simulated widths.

The population's counts are normal around n·p with covariance nΣ, the noisy ones around those with the noise's
variance. The best estimate of the cells given the observed ones has a variance in closed form, and the logistic
coefficient is a smooth function of the cells.
"""

from itertools import product

import numpy as np
from scipy.special import expit

from experiments.measures import Row, rounded
from experiments.task import stddev_for
from noisewise.demo import ROWS, TRUTH

CELLS = tuple(product((0, 1), repeat=3))
WIDTH = 2 * 1.959963984540054


def delta_width(stddev: float, dropped: tuple[int, int, int] | None = None) -> float:
    """Width of the 95 % interval of the first coefficient, with noise of this size, and one cell unobserved or none."""
    design = np.array([cell[:2] for cell in CELLS], float)
    outcome = np.array([cell[2] for cell in CELLS])
    rate = expit(design @ np.array(list(TRUTH.values())))
    shares = 0.25 * np.where(outcome == 1, rate, 1 - rate)
    information = ROWS * np.einsum("c,ci,cj->ij", shares * rate * (1 - rate), design, design)
    slope = np.linalg.solve(information, (design * (outcome - rate)[:, None]).T)[0]
    free = np.linalg.svd(np.ones((1, 8)))[2][1:].T  # directions in which the cells can move, their sum being n
    kept = [i for i, cell in enumerate(CELLS) if cell != dropped]
    sampling = ROWS * (np.diag(shares) - np.outer(shares, shares))
    covariance = sampling[np.ix_(kept, kept)] + stddev**2 * np.eye(len(kept))
    precision = free[kept].T @ np.linalg.solve(covariance, free[kept])
    direction = free.T @ slope
    return float(WIDTH * np.sqrt(direction @ np.linalg.solve(precision, direction)))


def theory_rows(epsilons: tuple[float, ...]) -> list[Row]:
    """Widths with all cells, and with one left out: relative to the first levels, and to the last as published."""
    return [
        {
            "epsilon": f"{epsilon:g}",
            "stddev": rounded(stddev_for(epsilon, ROWS, 1)),
            "all_cells": rounded(delta_width(stddev_for(epsilon, ROWS, 1))),
            "without_first_cell": rounded(delta_width(stddev_for(epsilon, ROWS, 1), (0, 0, 0))),
            "without_last_cell": rounded(delta_width(stddev_for(epsilon, ROWS, 1), (1, 1, 1))),
        }
        for epsilon in epsilons
    ]
