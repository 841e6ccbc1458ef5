"""A small data holder's study for attacks: a table on disk, a study, and what `measure` leaves behind."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from noisewise.artifacts import Release
from noisewise.privacy.noise import NoiseSource
from noisewise.study import Study, measure_study

SCHEMA = """
name = "people"

[[column]]
name = "a"
type = "categorical"
levels = ["p", "q", "r"]
other = "else"

[[column]]
name = "b"
type = "boolean"
missing = "category"

[[column]]
name = "age"
type = "numeric"
edges = [0, 30, 60, 120]
beyond = "end-bins"
integer = true

[[column]]
name = "c"
type = "categorical"
levels = ["u", "v"]
"""

STUDY = """
[data]
source = "{source}"

[schema]
file = "people.schema.toml"

[privacy]
epsilon = 1.0
lineage = "people"

[workload]
marginals = [["a", "b"], ["age", "c"]]
{select}

[synthesis]
datasets = 3

[[analysis]]
model = "binomial"
formula = "c ~ b"
"""
SELECT = 'select = { method = "mst", share = 0.2 }'
LEFT_OUT = ("name", "street")
"""Columns of the table that the schema does not speak of."""


def random_table(seed, rows=60):
    """A table that fits the schema, with skewed contents, values beyond it where it allows, and columns beside it."""
    random = np.random.default_rng(seed)
    skew = random.dirichlet(np.full(5, 0.5))
    return pa.table(
        {
            "a": random.choice(["p", "q", "r", "zebra", f"token{seed}"], rows, p=skew),
            "b": pa.array([{0: True, 1: False, 2: None}[v] for v in random.integers(0, 3, rows)]),
            "age": random.integers(-5, 200, rows) if seed % 2 else np.full(rows, seed % 120),
            "c": random.choice(["u", "v"], rows, p=[skew[0], 1 - skew[0]]),
            "name": [f"person {seed} {i}" for i in range(rows)],
            "street": [f"street {i * seed}" for i in range(rows)],
        }
    )


def write_study(folder: Path, table, *, select=SELECT, source="table.csv") -> Path:
    """Put table, schema and study into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(table, bytes):
        (folder / source).write_bytes(table)
    else:
        pyarrow.csv.write_csv(table, folder / source)
    (folder / "people.schema.toml").write_text(SCHEMA)
    (folder / "study.toml").write_text(STUDY.format(source=source, select=select))
    return folder / "study.toml"


def measure_here(folder: Path) -> Release:
    """Measure a study in this process, debiting the ledger beside it."""
    study = Study.load(folder / "study.toml")
    release = Release(folder / "release")
    measure_study(study, release, ledger=study.ledger(folder / "noisewise.ledger"))
    return release


class Fixed(NoiseSource):
    """Gives the same noisy counts whatever was counted: what is left is everything but the counts."""

    def gaussian(self, counts, stddev, squared_distance, rho):
        return np.arange(counts.size, dtype=np.int64).reshape(counts.shape) * 3 % 41

    def choose(self, scores, sensitivity, epsilon):
        return len(scores) // 2


def every_byte(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by name."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
