"""A small public example: three columns of three kinds, three marginals, and a posterior made by hand."""

import numpy as np

from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.posterior.result import FitRecord, Posterior, Verdict, model_of
from noisewise.schema import Boolean, Categorical, Numeric, Schema

SCHEMA = Schema(
    name="clinic",
    column=(
        Categorical(name="ward", levels=("north", "south", "west")),
        Boolean(name="smoker", missing="category"),
        Numeric(name="age", edges=(0, 40, 60, 100), integer=True),
        Categorical(name="grade", levels=(1, 2), ordered=True),
    ),
)
MARGINALS = (("ward", "smoker"), ("smoker", "age"), ("age", "grade"))
PRIVACY = PrivacyStatement(
    epsilon=1.0,
    delta=1e-6,
    rho=0.03,
    accountant="by hand",
    steps=(PrivacyStep(name="measure", mechanism="discrete Gaussian", rho=0.03),),
)


def small_counts(seed=0, rows=500, stddev=8.0, schema=SCHEMA, marginals=MARGINALS) -> NoisyCounts:
    random = np.random.default_rng(seed)
    measurements = []
    for marginal in marginals:
        shape = schema.shape(marginal)
        exact = random.multinomial(rows, random.dirichlet(np.full(int(np.prod(shape)), 5.0))).reshape(shape)
        noise = np.rint(random.normal(0, stddev, shape)).astype(np.int64)
        measurements.append(Measurement(marginal=marginal, values=exact + noise, stddev=stddev))
    return NoisyCounts(schema=schema, rows=rows, measurements=tuple(measurements), privacy=PRIVACY)


def posterior_by_hand(counts=None, draws=(2, 40), seed=1, spread=0.7, trusted=True) -> Posterior:
    """Draws that no fit made: enough for everything after a fit, without JAX."""
    counts = counts or small_counts()
    parameters = model_of(counts).parameters
    theta = np.random.default_rng(seed).normal(0, spread, (*draws, parameters))
    reasons = () if trusted else ("The posterior is far from normal.",)
    verdict = Verdict(trusted=trusted, summary="Made by hand.", reasons=reasons, numbers={"pareto_k": 0.1})
    record = FitRecord(method="ByHand", settings={"draws": 80}, prior_stddev=10.0, cells="all", seed=seed)
    return Posterior(noisy_counts=counts, theta=theta, verdict=verdict, record=record)
