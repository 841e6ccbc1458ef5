"""The one private act: exact counts go in, noisy counts come out, and what was spent is written on them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisewise.confidential.counts import ExactCounts, count
from noisewise.errors import BudgetError, DataError, SchemaError
from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.privacy.accounting import PrivacyLoss, calibrate
from noisewise.privacy.budget import Budget
from noisewise.privacy.noise import NoiseSource, OpenDPNoise
from noisewise.schema import Schema
from noisewise.workload import Marginal, Workload


def measure(
    data: Any,
    schema: Schema,
    workload: Workload,
    budget: Budget,
) -> NoisyCounts:
    """Measure the workload's marginals of a confidential table under differential privacy.

    `data` is a path or a data frame. All cells of all marginals get discrete Gaussian noise, as much as the budget
    needs for neighbours that differ by the content of one unit. The number of rows is public.
    """
    return measure_with_insecure_noise_for_tests(data, schema, workload, budget, noise=OpenDPNoise())


def measure_with_insecure_noise_for_tests(
    data: Any, schema: Schema, workload: Workload, budget: Budget, *, noise: NoiseSource
) -> NoisyCounts:
    """`measure` with a noise source of the caller's: for tests only, it promises no privacy at all."""
    if schema.origin == "data-derived":
        raise SchemaError("derived")
    exact = count(data, schema, workload.marginals)
    whole = budget.resolved(exact.rows)
    assert whole.delta is not None
    stddevs = calibrate(whole.epsilon, whole.delta, [1.0] * len(workload.marginals))
    loss = PrivacyLoss(stddevs=stddevs)
    measurements = tuple(
        Measurement(marginal=m, values=noise.gaussian(exact.tables[m], s, 2, 1 / s**2), stddev=s)
        for m, s in zip(workload.marginals, stddevs, strict=True)
    )
    step = PrivacyStep(name="measure", mechanism="discrete Gaussian", rho=loss.rho)
    statement = PrivacyStatement(
        epsilon=min(whole.epsilon, loss.epsilon(whole.delta)),
        delta=whole.delta,
        rho=loss.rho,
        accountant="exact",
        steps=(step,),
    )
    return NoisyCounts(schema=schema, rows=exact.rows, measurements=measurements, privacy=statement)
