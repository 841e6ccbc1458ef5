"""No privacy at all: the real table, analysed as it is. What every other method is measured against."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from experiments.task import Method, Task


@dataclass(frozen=True, kw_only=True)
class RealData(Method):
    """The table itself."""

    name: str = "real data"  # type: ignore[misc]
    """How tables call it."""
    pooled: bool = False  # type: ignore[misc]
    """One dataset: nothing to pool."""

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        return [task.confidential.table]
