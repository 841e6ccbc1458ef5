"""A generated table with every kind of column, which fits its schema; and its counts by brute force."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

from noisewise.schema import Boolean, Categorical, Date, Datetime, Numeric, Rule, Schema
from oracles.plain_levels import level

SCHEMA = Schema(
    column=(
        Categorical(name="Gemeinde", levels=("Süd", "日本", "O'Neill"), fold={"日本": ("😀",)}, other="others",
                    missing="category", missing_values=("?",)),
        Categorical(name="account", levels=(2**53, 2**53 + 1, 2**63 - 1, -(2**63)), missing="category"),
        Boolean(name="smoker", true_values=("ja",), false_values=("nein",), missing="category"),
        Numeric(name="age", edges=(0, 18, 65, 120), integer=True, codes=("N",), missing="category"),
        Numeric(name="income", edges=(0, 1e3, 1e4, 1e5), closed="right", beyond="end-bins", missing="category"),
        Numeric(name="rate", edges=(0, 0.25, 0.5, 1)),
        Date(name="born", first=date(2000, 1, 1), last=date(2000, 12, 31), period="quarter", missing="category"),
        Datetime(name="seen", first=date(2020, 1, 1), last=date(2020, 12, 31), period="month", time_zone="Europe/Helsinki",
                 beyond="end-bins", missing="category"),
        Datetime(name="noted", first=date(2020, 1, 1), last=date(2020, 12, 31), period="quarter",
                 time_zone="Europe/Helsinki", beyond="end-bins"),
    ),
    rule=(
        Rule(impossible={"smoker": "true", "age": "[0, 18)"}),
        Rule(impossible={"smoker": "true", "rate": "[0.5, 1]", "born": "2000-Q1"}),
    ),
)  # fmt: skip
MARGINALS = (
    ("Gemeinde", "smoker"), ("account",), ("smoker", "age", "income"), ("income", "rate"), ("born", "seen"), ("seen", "noted"),
)  # fmt: skip


def table(rows: int = 400, seed: int = 0) -> pa.Table:
    """Rows that fit the schema and its rules, with an id that up to a few rows share."""
    draw = random.Random(seed)
    found = [row for row in (_row(draw) for _ in range(2 * rows)) if not broken(row)][:rows]
    columns = {name: [row[name] for row in found] for name in SCHEMA.names}
    kinds = {"account": pa.int64(), "income": pa.float64(), "rate": pa.decimal128(20, 4), "born": pa.date32(),
             "seen": pa.timestamp("us", tz="UTC")}  # fmt: skip
    arrays = {name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()}
    person = pa.array([int(draw.expovariate(0.02)) for _ in found], pa.int64())
    return pa.table({"person": person, **arrays})


def _row(draw: random.Random) -> dict:
    moment = datetime(2019, 12, 31, 20, tzinfo=UTC) + timedelta(minutes=draw.randrange(530_000))
    return {
        "Gemeinde": draw.choice(["Süd", "日本", "😀", "O'Neill", "SÜD", "?", None, ""]),
        "account": draw.choice([2**53, 2**53 + 1, 2**63 - 1, -(2**63), None]),
        "smoker": draw.choice(["ja", "nein", "TRUE", " false ", "1", "0", None]),
        "age": draw.choice([str(draw.randrange(121)), f" {draw.randrange(99)}.5", "N", "", "NaN", None]),
        "income": draw.choice([draw.uniform(-5, 2e5), 1e3, 1e4, float("nan"), float("inf"), -0.0, None]),
        "rate": Decimal(draw.choice(["0", "0.25", "0.5", "1", f"0.{draw.randrange(9999):04}"])),
        "born": draw.choice([date(2000, 1, 1) + timedelta(days=draw.randrange(366)), None]),
        "seen": draw.choice([moment, None]),
        "noted": draw.choice(["2020-04-01T00:30+0300", "2020-03-31T21:30:00Z", "2020-06-30 23:59", "2020-12-31",
                              "2021-01-01", f"2020-{draw.randrange(1, 13):02}-10"]),
    }  # fmt: skip


def codes(row: dict) -> dict[str, int]:
    return {column.name: level(column, row[column.name]) for column in SCHEMA.columns}


def broken(row: dict) -> bool:
    found = codes(row)
    return any(all(found[SCHEMA.names[column]] in levels for column, levels in box) for box in SCHEMA.impossible)


def brute_force(data: pa.Table) -> dict[tuple[str, ...], np.ndarray]:
    """The counts of all marginals, row by row."""
    counts = {marginal: np.zeros(SCHEMA.shape(marginal), np.int64) for marginal in MARGINALS}
    for row in data.to_pylist():
        found = codes(row)
        for marginal, table in counts.items():
            table[tuple(found[name] for name in marginal)] += 1
    return counts


def agrees(exact, data: pa.Table) -> bool:
    """Whether all counts are those of brute force."""
    assert exact.rows == len(data)
    return all((exact.tables[marginal] == truth).all() for marginal, truth in brute_force(data).items())


def thinned_agrees(exact, data: pa.Table, most: int) -> bool:
    """Whether the counts are those of at most so many rows of each person, as far as brute force can tell."""
    sizes = Counter(data["person"].to_pylist())
    kept = sum(min(most, size) for size in sizes.values())
    return exact.rows == kept and all(
        exact.tables[marginal].sum() == kept and (exact.tables[marginal] <= truth).all()
        for marginal, truth in brute_force(data).items()
    )
