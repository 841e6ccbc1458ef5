"""How many marginals one scan should count: all 45 pairs of ten columns on each engine, in batches of several sizes."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import pyarrow.parquet as pq

from benchmarks.counting import SCHEMA, generate
from noisewise.confidential import files, grouping, joining
from noisewise.confidential.counts import count
from postgres_server import binaries, running_server
from spark_session import running_spark

PAIRS = tuple(combinations(SCHEMA.names, 2))


@contextmanager
def duckdb_table(path: Path) -> Iterator[Path]:
    files._MOST_HELD = 0  # what is held needs no further scans
    yield path


@contextmanager
def postgres_table(path: Path) -> Iterator[str]:
    types = {"ward": "text", "born": "date"}
    programs = binaries()
    if programs is None:
        sys.exit("PostgreSQL's server is not installed.")
    with running_server(programs) as server:
        plain = pq.read_table(path)
        for i, field in enumerate(plain.schema):
            if str(field.type).startswith("dictionary"):
                plain = plain.set_column(i, field.name, plain[field.name].cast("string"))
        yield server.load("people", plain, types)


@contextmanager
def spark_table(path: Path) -> Iterator[object]:
    with running_spark() as servers:
        yield servers.session.read.parquet(str(path))


ENGINES = {"duckdb": duckdb_table, "postgres": postgres_table, "pyspark": spark_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--sets", type=int, nargs="+", default=[1, 4, 16, 45])
    options = parser.parse_args()
    joining.MOST_CELLS = 1  # every pair is a table of its own
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        generate(path, options.rows)
        for engine, opened in ENGINES.items():
            with opened(path) as source:
                count(source, SCHEMA, PAIRS[:1])  # the first query of a session is slower
                for sets in options.sets:
                    grouping.SETS_PER_SCAN[engine] = sets
                    start = time.perf_counter()
                    count(source, SCHEMA, PAIRS)
                    print(f"{engine:9} {sets:3} marginals per scan  {time.perf_counter() - start:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
