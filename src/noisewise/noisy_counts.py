"""Noisy counts: what leaves the confidential side, with the promise under which it left.

Everything from here on is public: nothing downstream ever sees an exact count.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict

from noisewise.errors import ReleaseError
from noisewise.schema import Schema
from noisewise.workload import Marginal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHIN = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""


class PrivacyStep(BaseModel):
    """One private act: what was asked of the table and what it cost."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """What was done: "measure", "select", …"""
    mechanism: str
    """The mechanism's name."""
    rho: float
    """Its cost in zero-concentrated differential privacy."""
    epsilon: float | None = None
    """Its cost in pure differential privacy, where the mechanism has one."""
    stddevs: tuple[float, ...] = ()
    """The noise of every marginal this act measured. Those of all `kept` steps, one after the other, are the noise of
    the measurements."""
    rounds: tuple[float, ...] = ()
    """ε of every draw of the exponential mechanism this act made."""
    share: float = 1.0
    """Its share of the budget, as a part of 1: of the sum of squared distances between neighbours."""
    kept: bool = True
    """Whether what it measured is among the release's measurements; else it only served to decide something."""
    detail: str = ""
    """One sentence for people."""


class PrivacyStatement(BaseModel):
    """The promise: who is protected from what, by which mechanism, and what is public."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epsilon: float
    """ε of the whole release, all steps together."""
    delta: float
    """δ of the whole release."""
    rho: float
    """Zero-concentrated cost of all steps together."""
    neighbours: Literal["substitute-one"] = "substitute-one"
    """Neighbouring tables differ by the content of one unit; the number of rows is the same."""
    unit: str = "one row"
    """What one unit of protection is."""
    max_rows_per_unit: int = 1
    """How many rows one unit contributes at the most."""
    unprotected_quantities: tuple[str, ...] = ("the number of rows", "the schema", "the list of marginals")
    """What is public and not protected."""
    accountant: str
    """How (ε, δ) follow from the noise."""
    steps: tuple[PrivacyStep, ...]
    """The private acts, in order; their ρ add up to `rho`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Noisy counts of all cells of one marginal."""

    marginal: Marginal
    """The columns, in the schema's order."""
    values: np.ndarray
    """Noisy counts as int64, one axis per column."""
    stddev: float
    """Standard deviation of the noise in every cell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyCounts:
    """Every measured marginal with its noise, the public schema, n, and the privacy statement."""

    schema: Schema
    """The public schema."""
    rows: int
    """Number of rows of the confidential table; public."""
    measurements: tuple[Measurement, ...]
    """One per measured marginal. The same marginal may be measured more than once."""
    privacy: PrivacyStatement
    """What was promised and spent."""

    def __post_init__(self) -> None:
        for measurement in self.measurements:
            shape = self.schema.shape(measurement.marginal)
            if measurement.values.shape != shape or measurement.values.dtype != np.int64:
                raise ReleaseError(
                    f"The noisy counts of {list(measurement.marginal)} are {measurement.values.dtype} of shape "
                    f"{measurement.values.shape}; the schema says int64 of {shape}. Use the release's own schema."
                )
            if not (math.isfinite(measurement.stddev) and measurement.stddev > 0):
                raise ReleaseError(f"The noise of {list(measurement.marginal)} is {measurement.stddev}: not a size.")
            measurement.values.flags.writeable = False

    @property
    def marginals(self) -> tuple[Marginal, ...]:
        """The measured marginals, in the order of the measurements."""
        return tuple(measurement.marginal for measurement in self.measurements)

    @property
    def cells(self) -> int:
        """Total number of measured cells."""
        return sum(measurement.values.size for measurement in self.measurements)

    @property
    def hash(self) -> str:
        """SHA-256 over schema, rows, marginals, noise and values."""
        digest = hashlib.sha256(self.schema.hash.encode())
        digest.update(json.dumps([self.rows, self.marginals]).encode())
        for measurement in self.measurements:
            digest.update(repr(float(measurement.stddev)).encode())
            digest.update(np.ascontiguousarray(measurement.values, "<i8").tobytes())
        return digest.hexdigest()

    def plot(self, *columns: str) -> "Figure":
        """A picture of the noisy counts of a column, or of two that were measured together, with their noise.

        What comes back is a matplotlib figure: `.savefig("counts.svg")`. Needs the extra `plot`.
        """
        from noisewise.drawing.charts import bars, heat_map

        if not 1 <= len(columns) <= 2 or len(set(columns)) < len(columns):
            raise ReleaseError(f"plot() was given {list(columns)}. Name one column, or two different ones.")
        labels = [self.schema.column(name).labels for name in columns]
        seen = observed_counts(self, columns)
        if seen is None:
            raise ReleaseError(
                f"{' and '.join(map(repr, columns))} were not measured{' together' * (len(columns) > 1)}. "
                f"Measured: {', '.join(' × '.join(marginal) for marginal in self.marginals)}."
            )
        title = f"Noisy counts, with noise of standard deviation {seen.stddev:.3g}"
        if len(columns) == 1:
            return bars(columns[0], labels[0], seen.counts, WITHIN * seen.stddev, title)
        return heat_map(columns, labels, seen.counts, title)

    def to_arrow(self) -> pa.Table:
        """One row per measured cell: the measurement's number, its columns, the levels, the noisy count, the noise."""
        parts = [self._rows_of(number, m) for number, m in enumerate(self.measurements)]
        return pa.concat_tables(parts)

    def _rows_of(self, number: int, measurement: Measurement) -> pa.Table:
        labels = [self.schema.column(name).labels for name in measurement.marginal]
        levels = [
            [names[i] for names, i in zip(labels, index, strict=True)] for index in np.ndindex(measurement.values.shape)
        ]
        size = measurement.values.size
        return pa.table(
            {
                "measurement": pa.array(np.full(size, number, np.int32)),
                "columns": pa.array([list(measurement.marginal)] * size, pa.list_(pa.string())),
                "levels": pa.array(levels, pa.list_(pa.string())),
                "noisy_count": pa.array(measurement.values.reshape(-1)),
                "noise_stddev": pa.array(np.full(size, measurement.stddev)),
            }
        )

    @classmethod
    def from_arrow(cls, table: pa.Table, schema: Schema, rows: int, privacy: PrivacyStatement) -> "NoisyCounts":
        """Read back what `to_arrow` wrote; sizes and shapes are checked against the schema."""
        try:
            numbers = np.asarray(table["measurement"])
            count = int(numbers.max()) + 1 if len(numbers) else 0
            if count > len(numbers):
                raise ValueError("a measurement without a cell")
            parts = [table.filter(pc.equal(table["measurement"], number)) for number in range(count)]
            measurements = tuple(_measurement(part, schema) for part in parts)
        except (KeyError, IndexError, ValueError, TypeError, pa.ArrowException):
            raise ReleaseError(
                "The noisy counts do not have the expected columns and sizes. Get a fresh copy."
            ) from None
        return cls(schema=schema, rows=rows, measurements=measurements, privacy=privacy)


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """The noisy counts of some columns' cells, from all marginals that hold the columns."""

    counts: np.ndarray
    """The counts; where several marginals hold the columns, their mean weighted by precision."""
    stddev: float
    """Standard deviation of the privacy noise in each."""


def observed_counts(noisy_counts: NoisyCounts, subset: Marginal) -> Observed | None:
    """Sum marginals to the columns and take their weighted mean; None if no marginal holds the columns together."""
    found, weights = [], []
    for measurement in noisy_counts.measurements:
        if not set(subset) <= set(measurement.marginal):
            continue
        away = tuple(i for i, name in enumerate(measurement.marginal) if name not in subset)
        kept = [name for name in measurement.marginal if name in subset]
        summed = measurement.values.sum(axis=away)
        found.append(np.transpose(summed, [kept.index(name) for name in subset]).astype(float))
        weights.append(found[-1].size / (measurement.values.size * measurement.stddev**2))
    if not found:
        return None
    total = sum(weights)
    counts = sum(weight / total * table for weight, table in zip(weights, found, strict=True))
    return Observed(counts=np.asarray(counts), stddev=float(total**-0.5))


def _measurement(part: pa.Table, schema: Schema) -> Measurement:
    marginal = tuple(part["columns"][0].as_py())
    shape = schema.shape(marginal)
    values = np.array(part["noisy_count"], dtype=np.int64).reshape(shape)
    return Measurement(marginal=marginal, values=values, stddev=float(part["noise_stddev"][0].as_py()))
