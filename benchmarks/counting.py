"""Ten marginals of 100 million rows on one machine: rate against a raw scan of the same columns, and peak memory."""

import argparse
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisewise.schema import Boolean, Categorical, Date, Numeric, Schema

BLOCK = 1_000_000
LEVELS = {"ward": 12, "sex": 2, "education": 16, "occupation": 40, "region": 5}
SCHEMA = Schema(
    column=(
        *(
            Categorical(name=name, levels=tuple(f"{name} {i}" for i in range(size)), missing="category")
            for name, size in LEVELS.items()
        ),
        Numeric(name="age", edges=tuple(range(0, 110, 10))),
        Numeric(
            name="income",
            edges=(0, 5e3, 1e4, 2e4, 4e4, 8e4),
            beyond="end-bins",
            missing="category",
        ),
        Numeric(name="hours", edges=(0, 20, 40, 60, 80)),
        Boolean(name="smoker", missing="category"),
        Date(name="born", edges=tuple(f"{year}-01-01" for year in range(1900, 2001, 10))),
    )
)
MARGINALS = (
    ("ward", "occupation"), ("sex", "education"), ("education", "occupation"), ("age", "income"),
    ("occupation", "income"), ("hours", "smoker"), ("age", "born"), ("ward", "region"), ("sex", "age", "income"),
    ("education", "hours"),
)  # fmt: skip


def block(rows: int, number: int) -> pa.Table:
    draw = np.random.default_rng([0, number])

    def labels(name: str) -> pa.Array:
        codes = draw.integers(0, LEVELS[name], rows).astype(np.int32)
        names = pa.array([f"{name} {i}" for i in range(LEVELS[name])])
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=draw.random(rows) < 0.01), names)

    return pa.table(
        {
            **{name: labels(name) for name in LEVELS},
            "age": draw.integers(0, 101, rows),
            "income": pa.array(draw.lognormal(10, 1, rows), mask=draw.random(rows) < 0.02),
            "hours": draw.integers(0, 81, rows).astype(np.int32),
            "smoker": pa.array(draw.random(rows) < 0.2, mask=draw.random(rows) < 0.05),
            "born": pa.array(draw.integers(-25_567, 10_957, rows).astype(np.int32)).cast(pa.date32()),
        }
    )


def generate(path: Path, rows: int) -> None:
    sizes = [min(BLOCK, rows - start) for start in range(0, rows, BLOCK)]
    with pq.ParquetWriter(path, block(1, 0).schema, compression="zstd") as file:
        for number, size in enumerate(sizes):
            file.write_table(block(size, number))


def scan(path: Path) -> int:
    """Every value of the needed columns is read and compared once. (A count or a maximum is taken from the footer.)"""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        kinds = connection.execute(f"DESCRIBE FROM read_parquet('{path}')").fetchall()
        nowhere = {"VARCHAR": "'nowhere'", "BOOLEAN": "NULL", "DATE": "DATE '1000-01-01'"}
        found = (
            f'count(*) FILTER (WHERE "{name}" IS NOT DISTINCT FROM {nowhere.get(kind, -1)})' for name, kind, *_ in kinds
        )
        connection.execute(f"SELECT {', '.join(found)} FROM read_parquet('{path}')").fetchall()
    return pq.read_metadata(path).num_rows


def counts(path: Path) -> int:
    from noisewise.confidential.counts import count

    shown = [-1]

    def progress(what: str, done: int, total: int) -> None:
        if sys.stderr.isatty() or done >= shown[-1] + 20:
            shown.append(done)
            print(f"  {what}: {done} %", file=sys.stderr, flush=True)

    return count(path, SCHEMA, MARGINALS, progress=progress).rows


def measured(work: str, path: Path) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak resident memory in GB of a piece of work in a process of its own."""
    code = f"from benchmarks import counting; counting.report('{work}', '{path}')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    seconds, processor, peak = map(float, done.stdout.split())
    return seconds, processor, peak


def report(work: str, path: str) -> None:
    start, used = time.perf_counter(), time.process_time()
    {"scan": scan, "counts": counts}[work](Path(path))
    seconds, used = time.perf_counter() - start, time.process_time() - used
    print(seconds, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--table", type=Path, help="where the table is, or is to be kept; by default it is temporary")
    parser.add_argument("--only-generate", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.table or Path(folder) / "table.parquet"
        if not path.exists():
            generate(path, options.rows)
        if options.only_generate:
            return
        rows = pq.read_metadata(path).num_rows
        print(f"{rows:,} rows, {len(SCHEMA.names)} columns, {path.stat().st_size / 1e9:.2f} GB of Parquet")
        print(f"Python {platform.python_version()}, DuckDB {version('duckdb')}, Ibis {version('ibis-framework')}")
        measured("scan", path)  # the file comes into the page cache
        seconds, used = {}, {}
        for work in ("scan", "counts", "scan"):
            seconds[work], used[work], peak = measured(work, path)
            rate = f"{rows / seconds[work] / 1e6:6.1f} million rows/s"
            print(f"{work:8} {seconds[work]:7.1f} s  {used[work]:7.1f} processor s  {rate}  {peak:.2f} GB", flush=True)
        ratio, processor = (found["counts"] / found["scan"] for found in (seconds, used))
        print(f"ten marginals take {ratio:.2f} raw scans by the clock, {processor:.2f} by processor time")


if __name__ == "__main__":
    main()
