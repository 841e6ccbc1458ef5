"""The one private act: exact counts go in, noisy counts come out, and what was spent is written on them."""

from dataclasses import asdict
from typing import Any

from noisewise.confidential.counts import ExactCounts, count
from noisewise.errors import DataError, SchemaError
from noisewise.noisy_counts import Measurement, NoisyCounts
from noisewise.privacy.accounting import PrivacyLoss, calibrate
from noisewise.privacy.budget import Budget
from noisewise.privacy.ledger import Ledger
from noisewise.privacy.noise import NoiseSource, OpenDPNoise
from noisewise.privacy.statement import Act, loss_of, statement_of
from noisewise.schema import Schema
from noisewise.workload import Workload


def measure(
    data: Any,
    schema: Schema,
    workload: Workload,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    unit: str | None = None,
    max_rows_per_unit: int = 1,
) -> NoisyCounts:
    """Measure the workload's marginals of a confidential table under differential privacy.

    `data` is a path ("table.csv", "table.parquet", "file.duckdb::table"), a data frame, or an Ibis table. All
    cells of all marginals get discrete Gaussian noise, as much as the budget needs for neighbours that differ
    by the content of one unit: one row, or with `max_rows_per_unit` the rows that share a value of the column
    `unit`. The number of rows is public. There is no seed: noise that can be drawn again can be subtracted.

    With a `ledger` the cost is debited before anything is drawn, what passes the dataset's cap is refused, and the
    same question is answered once: asked again, it costs nothing and gives the same noisy counts. Without one, nobody
    adds up what several measurements tell about the same people: that is then the caller's part.
    """
    noise = OpenDPNoise()
    return measure_with_insecure_noise_for_tests(
        data, schema, workload, budget, ledger, unit=unit, max_rows_per_unit=max_rows_per_unit, noise=noise
    )


def measure_with_insecure_noise_for_tests(
    data: Any,
    schema: Schema,
    workload: Workload,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    unit: str | None = None,
    max_rows_per_unit: int = 1,
    noise: NoiseSource,
) -> NoisyCounts:
    """`measure` with a noise source of the caller's: for tests only, it promises no privacy at all."""
    refuse_unreviewed(schema)
    if max_rows_per_unit > 1 and unit is None:
        raise DataError("unit-column-missing")
    exact = count(data, schema, workload.marginals, unit, max_rows_per_unit)
    settled = budget.resolved(exact.rows)
    assert settled.delta is not None  # resolved
    loss = PrivacyLoss(
        stddevs=calibrate(settled.epsilon, settled.delta, [1.0] * len(workload.marginals), max_rows_per_unit),
        max_rows_per_unit=max_rows_per_unit,
    )
    moves = f"replacing one unit moves at most {2 * max_rows_per_unit} counts of each"
    acts = [Act(name="measure", loss=loss, detail=f"{len(loss.stddevs)} marginals; {moves}.")]
    statement = statement_of(acts, settled, unit)  # refuses before anything is drawn

    def draw() -> NoisyCounts:
        measurements = _noisy(exact, workload, loss, noise)
        return NoisyCounts(schema=schema, rows=exact.rows, measurements=measurements, privacy=statement)

    if ledger is None:
        return draw()
    asked = {
        "schema": schema.hash,
        "rows": exact.rows,
        "workload": asdict(workload),
        "epsilon": settled.epsilon,
        "delta": settled.delta,
        "unit": unit,
        "max_rows_per_unit": max_rows_per_unit,
    }
    return ledger.once(asked, loss_of(statement), settled, schema, draw, unit=unit)


def refuse_unreviewed(schema: Schema) -> None:
    """Refuse a schema that was read off confidential data and that nobody has reviewed."""
    if schema.origin == "data-derived":
        raise SchemaError(
            'This schema is marked origin = "data-derived": it was drafted from data, and its levels and edges may '
            'reveal records. Check every level and edge against public knowledge, then write origin = "reviewed".'
        )


def _noisy(exact: ExactCounts, workload: Workload, loss: PrivacyLoss, noise: NoiseSource) -> tuple[Measurement, ...]:
    """Add the noise, marginal by marginal; each is told how far neighbours lie apart and what it may cost."""
    largest = loss.max_rows_per_unit
    return tuple(
        Measurement(
            marginal=marginal,
            values=noise.gaussian(exact.tables[marginal], stddev, 2 * largest**2, (largest / stddev) ** 2),
            stddev=stddev,
        )
        for marginal, stddev in zip(workload.marginals, loss.stddevs, strict=True)
    )
