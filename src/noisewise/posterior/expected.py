"""What the posterior says of counts: every draw's expected count in every cell of some columns, and its band."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from noisewise.posterior.result import Posterior
from noisewise.workload import Marginal

BAND = (0.025, 0.975)
"""Ends of the band: 95 % of the posterior lie between."""
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
