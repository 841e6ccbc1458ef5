"""A small release for tests of what comes after it: made from invented noisy counts, without sampler or budget."""

import numpy as np

from noisewise.artifacts import Release
from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement, PrivacyStep
from noisewise.posterior.result import FitRecord, Posterior, Verdict, model_of
from noisewise.schema import Boolean, Categorical, Numeric, Schema
from noisewise.synthesis import synthesize

ROWS = 300
SCHEMA = Schema(
    name="people",
    column=(
        Categorical(name="race", levels=("White", "Black", "Other"), description="as answered"),
        Categorical(name="region", levels=(10, 20, 30), missing="category"),
        Boolean(name="owner"),
        Numeric(name="hours-per-week", edges=(0, 20, 40, 60), integer=True),
        Categorical(name="income", levels=("low", "high"), ordered=True),
        Numeric(name="age", edges=(16, 32, 46, 90), missing="category"),
    ),
)
MARGINALS = (("race", "owner"), ("region", "income"), ("hours-per-week", "income"), ("owner", "income"), ("age",))


def posterior(*, reasons=(), draws=60, spread=0.3, seed=0):
    """Draws around a fixed point, as if fitted."""
    random = np.random.default_rng(seed)
    measurements = tuple(
        Measurement(marginal=m, values=np.round(random.normal(50, 5, SCHEMA.shape(m))).astype(np.int64), stddev=2.0)
        for m in MARGINALS
    )
    step = PrivacyStep(name="measure", mechanism="discrete Gaussian", rho=0.1)
    statement = PrivacyStatement(epsilon=1.0, delta=1e-6, rho=0.1, accountant="test", steps=(step,))
    counts = NoisyCounts(schema=SCHEMA, rows=ROWS, measurements=measurements, privacy=statement)
    parameters = model_of(counts).parameters
    center = random.normal(0, 0.5, parameters)
    return Posterior(
        noisy_counts=counts,
        theta=center + spread * random.normal(size=(1, draws, parameters)),
        verdict=Verdict(trusted=not reasons, summary="for tests", reasons=tuple(reasons)),
        record=FitRecord(method="test", prior_stddev=10.0, cells="all", seed=0),
    )


def make_release(folder, *, datasets=30, rows=None, reasons=()):
    """Write the release to a folder."""
    made, release = posterior(reasons=reasons), Release(folder)
    release.write_noisy_counts(made.noisy_counts, ({"model": "binomial", "formula": "income ~ owner"},))
    release.write_posterior(made)
    release.write_datasets(synthesize(made, datasets, rows, seed=1, allow_untrusted=True))
    return release
