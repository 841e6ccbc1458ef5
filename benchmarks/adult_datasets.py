"""A hundred datasets like those of a release of the reduced Adult table: its binned rows, resampled."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from noisewise.schema import Categorical, Numeric, Schema
from noisewise.synthesis import StoredDatasets

DATA = Path(os.environ.get("NOISEWISE_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
DROPPED = ["fnlwgt", "educational-num", "native-country", "occupation", "relationship"]
AGE = Numeric(name="age", edges=(16.927, 31.6, 46.2, 60.8, 75.4, 90.0), closed="right")
HOURS = Numeric(name="hours-per-week", edges=(0.902, 20.6, 40.2, 59.8, 79.4, 99.0), closed="right")


def adult_datasets(folder: Path, datasets: int = 100, seed: int = 0) -> StoredDatasets:
    """Write resampled datasets as Parquet files, as a release holds them."""
    frame = pd.read_csv(DATA / "adult" / "adult.csv").drop(columns=DROPPED)
    frame = frame[~frame.eq("?").any(axis=1)].reset_index(drop=True)
    schema = _schema(frame)
    codes = _codes(frame, schema)
    paths = []
    for number in range(datasets):
        random = np.random.default_rng([seed, number])
        table = schema.decode(codes[random.integers(0, len(codes), len(codes))])
        paths.append(folder / f"dataset-{number:03d}.parquet")
        pq.write_table(table, paths[-1], compression="zstd")
    marginals = (("age", "income"), ("race", "income"), ("gender", "income"), ("race", "gender"))
    rows = len(codes)
    return StoredDatasets(paths=tuple(paths), schema=schema, rows=rows, original_rows=rows, marginals=marginals)


def _schema(frame: pd.DataFrame) -> Schema:
    columns = []
    for name in frame.columns:
        if name in ("age", "hours-per-week"):
            columns.append({"age": AGE, "hours-per-week": HOURS}[name])
        elif name.startswith("capital"):
            columns.append(Numeric(name=name, edges=(-0.5, 0.5, 1.5), integer=True))
        else:
            levels = sorted(frame[name].unique())
            first = ["White"] if name == "race" else []
            columns.append(Categorical(name=name, levels=tuple(dict.fromkeys([*first, *levels]))))
    return Schema(name="adult", column=tuple(columns))


def _codes(frame: pd.DataFrame, schema: Schema) -> np.ndarray:
    codes = np.zeros(frame.shape, np.int32)
    for i, column in enumerate(schema.columns):
        values = frame[column.name]
        if isinstance(column, Categorical):
            codes[:, i] = pd.Categorical(values, categories=list(column.levels)).codes
        elif column.name.startswith("capital"):
            codes[:, i] = values > 0
        else:
            codes[:, i] = np.searchsorted(column.edges[1:-1], values, side="left")
    return codes


def table_to_pandas(table: pa.Table) -> pd.DataFrame:
    """What an analyst's own loop would start from."""
    return table.to_pandas()
