"""What the posterior says of counts: every draw's expected count in every cell of some columns, and its band."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.result import Posterior
from noisewise.workload import Marginal

BAND = (0.025, 0.975)
"""Ends of the band: 95 % of the posterior lie between."""
WITHIN = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""
_MOST_DRAWS, _MOST_CELLS = 400, 40_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """The expected counts of some columns' cells over the posterior."""

    mean: Float[np.ndarray, "..."]
    """The mean over the draws: what the synthetic datasets are on average."""
    low: Float[np.ndarray, "..."]
    """Lower end of the 95 % interval for the population."""
    high: Float[np.ndarray, "..."]
    """Upper end."""


def expected_counts(posterior: Posterior, subsets: Sequence[Marginal]) -> dict[Marginal, Expected]:
    """Expected counts of each subset of columns, of which each must lie within one measured marginal or be one column.

    As many draws are looked at as the model's size allows, spread evenly over all of them.
    """
    schema, model = posterior.noisy_counts.schema, posterior.model
    wanted = {subset: tuple(schema.index(name) for name in subset) for subset in subsets}
    homes = {subset: model.tree.home(columns) for subset, columns in wanted.items()}
    found: dict[Marginal, list[np.ndarray]] = {subset: [] for subset in subsets}
    for theta in evenly(posterior.draws, max(20, min(_MOST_DRAWS, _MOST_CELLS // max(1, model.tree.cells)))):
        tables = model.clique_probabilities(theta)
        for subset, columns in wanted.items():
            clique = model.tree.cliques[homes[subset]]
            summed = tables[homes[subset]].sum(tuple(i for i, c in enumerate(clique) if c not in columns))
            kept = [c for c in clique if c in columns]
            found[subset].append(np.transpose(summed, [kept.index(c) for c in columns]))
    return {subset: _expected(np.stack(tables) * posterior.noisy_counts.rows) for subset, tables in found.items()}


def evenly(draws: Float[np.ndarray, "draws parameters"], most: int) -> Float[np.ndarray, "chosen parameters"]:
    """All draws, or some that are spread evenly over them."""
    if len(draws) <= most:
        return draws
    return draws[np.linspace(0, len(draws) - 1, most).round().astype(int)]


def _expected(counts: Float[np.ndarray, "draws ..."]) -> Expected:
    low, high = np.quantile(counts, BAND, axis=0)
    return Expected(mean=counts.mean(axis=0), low=low, high=high)


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """The noisy counts of some columns' cells, from all marginals that hold the columns."""

    counts: Float[np.ndarray, "..."]
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
