"""Bin edges bought with a part of the budget: noisy counts on a public grid, and quantiles read off them.

Everything is counted once, between the points of the grids, before anything is drawn. Once the noise has said where
the edges lie, the counts are added up to bins: the table is never opened a second time, and the edges are a function of
noisy counts alone.
"""

from collections.abc import Mapping

import numpy as np

from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.noise import NoiseSource
from noisewise.schema import Numeric, QuantileNumeric, Schema
from noisewise.workload import Marginal


def histograms(schema: Schema) -> tuple[Marginal, ...]:
    """What has to be counted to find the edges: one marginal for each column whose edges are yet to be bought."""
    return tuple((column.name,) for column in schema.to_be_bought)


def buy_edges(tables: Mapping[Marginal, np.ndarray], schema: Schema, loss: PrivacyLoss, noise: NoiseSource) -> Schema:
    """The schema with edges at noisy quantiles; `tables` are exact counts on the grids, `loss` what this may cost."""
    edges = {}
    for column, stddev in zip(schema.to_be_bought, loss.stddevs, strict=True):
        rows = loss.max_rows_per_unit
        noisy = noise.gaussian(tables[(column.name,)], stddev, 2 * rows**2, (rows / stddev) ** 2)
        edges[column.name] = column.edges_from(noisy)
    return schema.with_edges(edges)


def in_bins(tables: Mapping[Marginal, np.ndarray], schema: Schema, settled: Schema) -> dict[Marginal, np.ndarray]:
    """Exact counts on the grids of `schema`, added up to the bins of `settled`."""
    return {marginal: _in_bins(table, marginal, schema, settled) for marginal, table in tables.items()}


def _in_bins(table: np.ndarray, marginal: Marginal, schema: Schema, settled: Schema) -> np.ndarray:
    for axis, name in enumerate(marginal):
        column, known = schema.column(name), settled.column(name)
        if isinstance(column, QuantileNumeric) and isinstance(known, Numeric):
            first = np.moveaxis(table, axis, 0)
            added = np.zeros((known.size, *first.shape[1:]), table.dtype)
            np.add.at(added, column.levels_from_grid(known.edges), first)
            table = np.moveaxis(added, 0, axis)
    return np.ascontiguousarray(table)
