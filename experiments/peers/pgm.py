"""PGM: a point estimate of the graphical model from noisy marginals, by the maintained `mbi` package.

One dataset from one fit is analysed as if it were real. PGM-repeat-k measures and fits k times within the one budget
and pools the k datasets. Rows are drawn independently by default; `rounding` makes them as the published experiments
did, which leaves less sampling variance in the data than Rubin's rules assume.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from experiments.task import Method, Task
from noisewise.noisy_counts import Measurement
from noisewise.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Pgm(Method):
    """One measurement, one mirror-descent fit, one dataset."""

    name: str = "PGM"  # type: ignore[misc]  # of the class there, of the variant here
    """How tables call this variant."""
    repeats: int = 1
    """Number of measurements and fits within the budget; above 1 the datasets are pooled."""
    iterations: int = 1000
    """Steps of mirror descent."""
    rounding: bool = False
    """Whether rows come by rounding instead of independent sampling."""

    @property
    def pooled(self) -> bool:  # type: ignore[override]
        """Whether there is anything to pool."""
        return self.repeats > 1

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        return [
            self._fitted(task, noisy_counts.measurements, number)
            for number, noisy_counts in enumerate(task.noisy_counts(self.repeats))
        ]

    def _fitted(self, task: Task, measured: Sequence[Measurement], number: int) -> pa.Table:
        with double_precision():
            model = estimate(task.schema, measured, task.rows, self.iterations)
            codes = draw(model, task.schema, task.rows, task.seed_of("rows", number), self.rounding)
        return task.schema.decode(codes)


def mbi_module() -> ModuleType:
    """The package, imported without its remarks on JAX's settings, which the caller chooses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi
    return mbi


@contextmanager
def double_precision() -> Iterator[None]:
    """Counts of a million rows do not fit into single precision."""
    import jax

    with jax.enable_x64(True):
        yield


def estimate(schema: Schema, measured: Sequence[Measurement], rows: int, iterations: int, start: Any = None) -> Any:
    """The graphical model nearest to the measurements in squared error over their noise, by mirror descent."""
    mbi = mbi_module()
    domain = mbi.Domain(schema.names, schema.sizes)
    measurements = [
        mbi.LinearMeasurement(m.values.reshape(-1).astype(float), m.marginal, stddev=m.stddev) for m in measured
    ]
    return mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=float(rows), iters=iterations, warm_start=start
    )


def draw(model: Any, schema: Schema, rows: int, seed: int, rounding: bool = False) -> np.ndarray:
    """Level codes of synthetic rows from a fitted model."""
    with _seeded(seed):
        drawn = model.synthetic_data(rows=rows, method="round" if rounding else "sample")
    return np.stack([np.asarray(drawn.data[name]) for name in schema.names], axis=1)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator, from which the package draws, and put it back afterwards."""
    state = np.random.get_state()  # noqa: NPY002  # the package's choice
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
