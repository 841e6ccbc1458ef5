"""The one private act: exact counts go in, noisy counts come out, and what was spent is written on them."""

from dataclasses import asdict
from typing import Any

from noisewise.confidential.counts import ExactCounts, count
from noisewise.errors import DataError, SchemaError
from noisewise.noisy_counts import Measurement, NoisyCounts
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.acts import EDGES, MEASURE, SELECT, planned_acts
from noisewise.privacy.allowance import Allowance
from noisewise.privacy.budget import Budget
from noisewise.privacy.edges import buy_edges, histograms, in_bins
from noisewise.privacy.ledger import Ledger
from noisewise.privacy.noise import NoiseSource, OpenDPNoise
from noisewise.privacy.selection import Chances, Selection
from noisewise.privacy.statement import loss_of, statement_of
from noisewise.progress import Progress, silent
from noisewise.schema import Schema
from noisewise.workload import Workload, refuse_huge


def measure(
    data: Any,
    schema: Schema,
    workload: Workload,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    select: Selection | None = None,
    unit: str | None = None,
    max_rows_per_unit: int = 1,
    progress: Progress = silent,
) -> NoisyCounts:
    """Measure the workload's marginals of a confidential table under differential privacy.

    `data` is a path ("table.csv", "table.parquet", "file.duckdb::table"), a data frame, or an Ibis table. All
    cells of all marginals get discrete Gaussian noise, as much as the budget needs for neighbours that differ
    by the content of one unit: one row, or with `max_rows_per_unit` the rows that share a value of the column
    `unit`; of a unit with more, so many are counted. The number of rows is public. There is no seed: noise that can be
    drawn again can be subtracted.

    With `select` (such as `Mst(share=0.1)`) further marginals are chosen from the table itself: that is a private act
    too, has its own share of the budget, and its own line in the statement.

    Columns with edges = "quantiles" get them from noisy counts on their grids: a private act as well, with the share of
    the budget that the schema declares. The noisy counts come with the schema that has the edges.

    With a `ledger` the cost is debited before anything is drawn, what passes the dataset's cap is refused, and the
    same question is answered once: asked again, it costs nothing and gives the same noisy counts. Without one, nobody
    adds up what several measurements tell about the same people: that is then the caller's part.
    """
    noise = OpenDPNoise()
    return measure_with_insecure_noise_for_tests(
        data,
        schema,
        workload,
        budget,
        ledger,
        select=select,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
        noise=noise,
        progress=progress,
    )


def measure_with_insecure_noise_for_tests(
    data: Any,
    schema: Schema,
    workload: Workload,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    select: Selection | None = None,
    unit: str | None = None,
    max_rows_per_unit: int = 1,
    noise: NoiseSource,
    progress: Progress = silent,
) -> NoisyCounts:
    """`measure` with a noise source of the caller's: for tests only, it promises no privacy at all."""
    refuse_unreviewed(schema)
    if max_rows_per_unit > 1 and unit is None:
        raise DataError("unit-column-missing")
    if select is not None and not select.choices(schema, workload.marginals):
        select = None  # what is required ties everything together already
    looked_at = () if select is None else (*select.one_way(schema), *select.candidates(schema, workload.marginals))
    fine = schema.on_grids
    wanted = tuple(dict.fromkeys((*histograms(schema), *workload.marginals, *looked_at)))
    for marginal in wanted:
        refuse_huge(fine, marginal)
    exact = count(data, fine, wanted, unit, max_rows_per_unit, progress)
    settled = budget.resolved(exact.rows)
    acts = planned_acts(schema, workload, settled, select, max_rows_per_unit)
    statement = statement_of(acts, settled, unit)  # refuses before anything is drawn
    losses = {act.name: act.loss for act in acts}

    def draw() -> NoisyCounts:
        allowance = Allowance(loss_of(statement), noise)
        known = schema
        if EDGES in losses:
            known = buy_edges(exact.tables, schema, losses[EDGES], allowance)
        counted = ExactCounts(rows=exact.rows, tables=in_bins(exact.tables, schema, known))
        measurements = _drawn(counted, schema, known, workload, select, losses, allowance)
        return NoisyCounts(schema=known, rows=exact.rows, measurements=measurements, privacy=statement)

    if ledger is None:
        return draw()
    asked = {
        "schema": schema.hash,
        "rows": exact.rows,
        "workload": asdict(workload),
        "select": None if select is None else select.described(),
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


def _drawn(
    exact: ExactCounts,
    schema: Schema,
    known: Schema,
    workload: Workload,
    select: Selection | None,
    losses: dict[str, PrivacyLoss],
    allowance: Allowance,
) -> tuple[Measurement, ...]:
    """Add the noise, act by act and marginal by marginal."""
    stddevs = losses[MEASURE].stddevs
    chances = Chances(
        tables=exact.tables,
        schema=known,
        rows=exact.rows,
        first=losses.get(SELECT, PrivacyLoss(max_rows_per_unit=losses[MEASURE].max_rows_per_unit)),
        measuring=stddevs[len(workload.marginals) :],
        noise=allowance,
    )
    required = tuple(chances.measured(m, stddev) for m, stddev in zip(workload.marginals, stddevs, strict=False))
    measurements = required
    if select is not None:
        chosen = select.choose(schema, required, chances)
        measurements = (*chosen.kept, *required, *chosen.marginals)
    allowance.refuse_leftovers()
    return measurements
