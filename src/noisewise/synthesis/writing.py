"""Datasets as Parquet files: one file each, or a folder of partitions each."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq

from noisewise.progress import Progress, silent
from noisewise.synthesis.series import SyntheticDatasets
from noisewise.synthesis.stored import StoredDatasets

MAX_WORKERS = 4  # more threads wait for each other


def write_datasets(datasets: SyntheticDatasets, folder: Path, progress: Progress = silent) -> list[Path]:
    """Write each dataset to a Parquet file of its own, a few at a time, one per processor.

    Memory grows neither with the number of datasets nor with their rows: a worker holds one partition, which becomes
    a row group of the file. The bytes do not depend on who drew which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digits = _digits(datasets)
    paths = [folder / f"dataset-{number:0{digits}d}.parquet" for number in range(len(datasets))]
    _each(lambda number: _write(datasets, number, paths[number]), len(paths), progress)
    return paths


def write_partitions(datasets: SyntheticDatasets, folder: Path, progress: Progress = silent) -> StoredDatasets:
    """Write datasets as one partitioned Parquet dataset: `dataset=000/part-00000.parquet` and so on.

    Query engines read the whole of it as one table with the column `dataset`. `on_spark(...).write(folder)` writes the
    same files with the same bytes.
    """
    count = datasets.partition_count
    tasks = len(datasets) * count
    _each(lambda task: write_partition(datasets, folder, *divmod(task, count)), tasks, progress)
    return stored_partitions(datasets, folder)


def write_partition(datasets: SyntheticDatasets, folder: Path, number: int, partition: int) -> None:
    """Write one partition of one dataset; readers see all of it or nothing."""
    path = folder_of(datasets, folder, number) / f"part-{partition:05d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        for table in datasets.partitions(number, range(partition, partition + 1)):
            pq.write_table(table, partial, compression="zstd", use_dictionary=True)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def stored_partitions(datasets: SyntheticDatasets, folder: Path) -> StoredDatasets:
    """The datasets as they lie in a folder of partitions."""
    return StoredDatasets(
        paths=tuple(folder_of(datasets, folder, number) for number in range(len(datasets))),
        schema=datasets.schema,
        rows=datasets.rows,
        original_rows=datasets.original_rows,
        marginals=datasets.marginals,
        warnings=datasets.warnings,
    )


def folder_of(datasets: SyntheticDatasets, folder: Path, number: int) -> Path:
    """The folder of dataset `number`'s partitions."""
    return folder / f"dataset={number:0{_digits(datasets)}d}"


def _digits(datasets: SyntheticDatasets) -> int:
    return max(3, len(str(len(datasets) - 1)))


def _each(work: Callable[[int], None], count: int, progress: Progress) -> None:
    with ThreadPoolExecutor(min(MAX_WORKERS, os.cpu_count() or 1)) as pool:
        try:
            for done, _ in enumerate(pool.map(work, range(count))):
                progress("drawing datasets", done + 1, count)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # an interruption does not wait for what has not begun
            raise


def _write(datasets: SyntheticDatasets, number: int, path: Path) -> None:
    tables = datasets.partitions(number, range(datasets.partition_count))
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd", use_dictionary=True) as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table)
