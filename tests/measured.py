"""Truthful small releases without a fit: measured for real, written as the commands write them."""

import numpy as np
import pyarrow as pa

from noise_twins import Twin
from noisewise.artifacts import Release
from noisewise.privacy.budget import Budget
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.schema import Categorical, Schema
from noisewise.workload import Workload

SCHEMA = Schema(
    name="people",
    column=(
        Categorical(name="a", levels=("p", "q")),
        Categorical(name="b", levels=("r", "s", "t")),
        *(Categorical(name=name, levels=("u", "v")) for name in "cdefgh"),
    ),
)
WORKLOAD = Workload.of(SCHEMA, [["a", "b"], ["b", "c"]])


def table(rows=300, seed=0, schema=SCHEMA):
    """Independent uniform rows."""
    random = np.random.default_rng(seed)
    return pa.table({c.name: random.choice(np.array(c.declared_labels), rows) for c in schema.columns})


def measured_release(folder, *, noise=None, epsilon=1.0, **options) -> Release:
    """A release that holds noisy counts and nothing else."""
    release = Release(folder)
    counts = measure_with_insecure_noise_for_tests(
        options.pop("data", table()), SCHEMA, options.pop("workload", WORKLOAD), Budget(epsilon),
        noise=noise or Twin(), **options,
    )  # fmt: skip
    release.write_noisy_counts(counts)
    return release
