"""Noisy counts of invented rows. The noise is simulated and seeded: it protects nobody, and there is nobody to protect.

Nothing here may be given real records: what `measure` does for them is in `noisewise.privacy`.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Integer

from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.schema import Schema
from noisewise.workload import Marginal

ROUNDED_FROM = 1_000.0
REHEARSED = PrivacyStatement(
    epsilon=math.inf,
    delta=0.0,
    rho=math.inf,
    unit="none: the rows are invented",
    accountant="none: a rehearsal with simulated noise promises no privacy",
    steps=(PrivacyStep(name="rehearse", mechanism="simulated discrete Gaussian", rho=math.inf),),
)


def rehearsed_counts(
    codes: Integer[np.ndarray, "rows columns"],
    schema: Schema,
    marginals: Sequence[Marginal],
    stddevs: Sequence[float],
    stream: np.random.Generator,
) -> NoisyCounts:
    """Count invented rows and add simulated noise of the size that `measure` would add."""
    measurements = tuple(
        Measurement(marginal=marginal, values=_noisy(codes, schema, marginal, stddev, stream), stddev=stddev)
        for marginal, stddev in zip(marginals, stddevs, strict=True)
    )
    return NoisyCounts(schema=schema, rows=len(codes), measurements=measurements, privacy=REHEARSED)


def _noisy(
    codes: np.ndarray, schema: Schema, marginal: Marginal, stddev: float, stream: np.random.Generator
) -> np.ndarray:
    shape = schema.shape(marginal)
    columns = tuple(codes[:, schema.index(name)] for name in marginal)
    cells = np.ravel_multi_index(columns, shape)
    counts = np.bincount(cells, minlength=math.prod(shape)).astype(np.int64).reshape(shape)
    return np.asarray(counts + simulated_noise(stddev, shape, stream))


def simulated_noise(stddev: float, shape: tuple[int, ...], stream: np.random.Generator) -> np.ndarray:
    """Draws of the discrete Gaussian by inverting its distribution function in floating point.

    Large noise is a rounded normal instead: its variance is larger by 1/12, less than one part in ten million.
    """
    if stddev > ROUNDED_FROM:
        return np.rint(stream.normal(0.0, stddev, shape)).astype(np.int64)
    reach = math.ceil(12 * stddev) + 1
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-((support / stddev) ** 2) / 2)
    distribution = np.cumsum(weights / weights.sum())
    return np.asarray(support[np.searchsorted(distribution[:-1], stream.random(shape), side="right")])
