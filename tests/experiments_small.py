"""A small table that every test of the methods can afford: the toy's."""

import numpy as np

from experiments.task import Confidential, Task
from noisewise.demo import demo_schema, demo_table
from noisewise.workload import Workload


def toy_task(epsilon: float = 100.0, rows: int = 20_000, seed: int = 1, marginals=None) -> Task:
    """The toy's table at some budget."""
    schema, table = demo_schema(), demo_table(seed=1, rows=rows)
    codes = np.stack([table[name].to_numpy() for name in schema.names], axis=1)
    return Task(
        confidential=Confidential(schema=schema, codes=codes),
        workload=Workload.of(schema, marginals or [schema.names]),
        epsilon=epsilon,
        seed=seed,
    )
