"""PGM: a point estimate of the graphical model from noisy marginals, by the maintained `mbi` package.

`Pgm` draws one dataset from one fit and analyses it as if it were real. `PgmRepeat` measures and fits k times
within the same budget and pools the k datasets. Rows are drawn independently by default; `rounding` makes them as the
published experiments did, which leaves less sampling variance in the data than Rubin's rules assume.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from experiments.task import Method, Task
from noisewise.noisy_counts import NoisyCounts


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
            self._fitted(task, noisy_counts, number)
            for number, noisy_counts in enumerate(task.noisy_counts(self.repeats))
        ]

    def _fitted(self, task: Task, noisy_counts: NoisyCounts, number: int) -> pa.Table:
        import jax

        with jax.enable_x64(True), _seeded(int(task.generator(10 + number).integers(2**32))):
            model = _estimate(noisy_counts, self.iterations)
            drawn = model.synthetic_data(rows=task.rows, method="round" if self.rounding else "sample")
        return task.schema.decode(np.stack([np.asarray(drawn.data[name]) for name in task.schema.names], axis=1))


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed NumPy's global generator, from which the package draws, and put it back afterwards."""
    state = np.random.get_state()  # noqa: NPY002  # the package's choice
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _estimate(noisy_counts: NoisyCounts, iterations: int):  # noqa: ANN202  # a type of an untyped package
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of JAX settings that the caller chooses, and does choose
        import mbi

    domain = mbi.Domain(noisy_counts.schema.names, noisy_counts.schema.sizes)
    measurements = [
        mbi.LinearMeasurement(m.values.reshape(-1).astype(float), m.marginal, stddev=m.stddev)
        for m in noisy_counts.measurements
    ]
    return mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=float(noisy_counts.rows), iters=iterations
    )
