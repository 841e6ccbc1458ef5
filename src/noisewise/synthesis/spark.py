"""Datasets with a Spark cluster doing the work: written partition by partition, analysed one by one."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from noisewise.errors import NoisewiseError
from noisewise.synthesis.series import SyntheticDatasets
from noisewise.synthesis.writing import stored_partitions, write_partition


class SparkDatasets(SyntheticDatasets):
    """A series of datasets on which a Spark session works. Make one with `on_spark`.

    What is computed is what one machine computes, to the last byte: every partition has a random stream of its own.
    """

    def __init__(self, *, whole: SyntheticDatasets, session: Any) -> None:
        self._whole, self._session = whole, session
        self.schema, self.rows, self.original_rows = whole.schema, whole.rows, whole.original_rows
        self.marginals, self.warnings = whole.marginals, whole.warnings

    def __len__(self) -> int:
        return len(self._whole)

    def table(self, number: int) -> pa.Table:
        return self._whole.table(number)

    def part(self, number: int, columns: Sequence[str]) -> pa.Table:
        return self._whole.part(number, columns)

    @property
    def partition_count(self) -> int:
        return self._whole.partition_count

    def partitions(self, number: int, which: range) -> Iterator[pa.Table]:
        return self._whole.partitions(number, which)

    def write(self, folder: str | Path) -> "SparkDatasets":
        """Write the datasets as one partitioned Parquet dataset, a task per partition, and give them as they lie there.

        `folder` must be the same place for all workers. The files are those that `write_partitions` writes.
        """
        whole, place, count = self._whole, Path(folder).absolute(), self._whole.partition_count
        _spread(self._session, partial(_write_task, whole, place, count), len(whole) * count)
        return SparkDatasets(whole=stored_partitions(whole, place), session=self._session)

    def map(self, work: Callable[[Any, int], Any], columns: Sequence[str] | None = None) -> list[Any]:
        """Results of `work(dataset, number)` for each dataset, in order, a task per dataset."""
        return _spread(self._session, partial(_map_task, self._whole, work, columns), len(self._whole))


def on_spark(datasets: SyntheticDatasets, session: Any) -> SparkDatasets:
    """Let a Spark session (a classic one, or one of Spark Connect) write and analyse datasets.

        datasets = on_spark(synthesize(posterior, 100), session).write("/shared/synthetic")
        analyze(datasets, glm("income ~ age", family="binomial"))

    The workers need noisewise, in the version that is used here.
    """
    return SparkDatasets(whole=datasets, session=session)


def _write_task(datasets: SyntheticDatasets, folder: Path, count: int, task: int) -> None:
    write_partition(datasets, folder, *divmod(task, count))


def _map_task(
    datasets: SyntheticDatasets, work: Callable[[Any, int], Any], columns: Sequence[str] | None, number: int
) -> Any:
    return work(datasets.table(number) if columns is None else datasets.part(number, columns), number)


def _spread(session: Any, work: Callable[[int], Any], tasks: int) -> list[Any]:
    """Results of `work(0)`, `work(1)`, …, one task each; the first error of ours is raised here as if it were here.

    Results travel between this process and its own workers as Spark's Python objects do.
    """
    frame = session.range(0, tasks, 1, tasks).mapInArrow(
        partial(_run, work), "task bigint, error string, result binary"
    )
    rows = sorted(frame.toArrow().to_pylist(), key=lambda row: row["task"])
    packer = _packer()
    results = [packer.loads(row["result"]) for row in rows]
    ours = {kind.__name__: kind for kind in NoisewiseError.__subclasses__()}
    for row, result in zip(rows, results, strict=True):
        if row["error"]:
            raise ours[row["error"]](result)
    return results


def _run(work: Callable[[int], Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a worker does."""
    packer = _packer()
    for batch in batches:
        for task in batch.column(0).to_pylist():
            try:
                result, error = work(task), ""
            except NoisewiseError as caught:
                result, error = str(caught), type(caught).__name__
            columns = {"task": [task], "error": [error], "result": [packer.dumps(result)]}
            yield pa.RecordBatch.from_pydict(columns)


def _packer() -> Any:
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer()
