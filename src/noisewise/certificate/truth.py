"""The truth of a known population: what an analysis would give there, without sampling and without privacy noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.formulas import parse
from noisewise.certificate.populations import Known
from noisewise.errors import AnalysisError, ModelError
from noisewise.model.joint import joint_probabilities
from noisewise.schema import Schema

LEAST, MOST, FACTOR = 1_000_000, 5_000_000, 20
"""Rows of the table that stands for the population: so many times the confidential rows, within these bounds."""
EXACT = (
    "computed from the exact distribution of each population, as the analysis of a table of {rows:,} rows in which "
    "every combination of its columns occurs in proportion"
)
DRAWN = "taken from one large draw of each population ({rows:,} rows)"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The estimands of an analysis in one population."""

    values: dict[str, float]
    """Their values, by term; those that the population does not determine are missing."""
    how: str
    """How they were computed."""


def truth_of(population: Known, schema: Schema, estimator: Estimator, original_rows: int, seed: int) -> Truth:
    """What the analysis gives in the population itself.

    Where the analysis' columns are few it is run on a table that holds every combination of their levels as often as
    the population has it, rounded to whole rows; otherwise on a large draw.
    """
    rows = min(MOST, max(LEAST, FACTOR * original_rows))
    stream = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(3,))))
    table, how = _in_proportion(population, schema, estimator, rows, stream), EXACT
    if table is None:
        table, how = schema.decode(population.draw(rows, stream), stream), DRAWN
    return Truth(values=_values(estimator.fit([table])), how=how.format(rows=rows))


def _in_proportion(
    population: Known, schema: Schema, estimator: Estimator, rows: int, stream: np.random.Generator
) -> pa.Table | None:
    """The table in proportion; None where the analysis' columns are unknown or too many."""
    try:
        names = parse(estimator.rests_on).columns if estimator.rests_on else ()
        chosen = [schema.index(name) for name in names]
        probabilities = joint_probabilities(population.tree, population.log_conditionals, chosen) if chosen else None
    except (AnalysisError, ModelError):
        return None
    if probabilities is None:
        return None
    counts = in_proportion(probabilities.reshape(-1), rows)
    codes = np.stack(np.unravel_index(np.repeat(np.arange(counts.size), counts), probabilities.shape), axis=1)
    part = Schema(name=schema.name, column=tuple(schema.columns[c] for c in chosen))
    return part.decode(codes, stream)


def in_proportion(probabilities: np.ndarray, rows: int) -> np.ndarray:
    """Whole numbers that add up to `rows`, each within one of its share (largest remainders)."""
    shares = probabilities / probabilities.sum() * rows
    counts = np.floor(shares).astype(np.int64)
    order = np.argsort(counts - shares, kind="stable")
    counts[order[: rows - counts.sum()]] += 1
    return counts


def _values(estimates: Estimates) -> dict[str, float]:
    found: Any = zip(estimates.terms, estimates.values[0], estimates.used[0], strict=True)
    return {term: float(value) for term, value, used in found if used}
