"""What was measured: the noise of every marginal beside its counts, and the counts of columns and pairs."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from noisewise.noisy_counts import WITHIN, NoisyCounts, Observed, observed_counts
from noisewise.posterior.expected import Expected, expected_counts
from noisewise.posterior.result import Posterior
from noisewise.workload import Marginal

MOST_WRITTEN = 5_000
"""Cells of the largest pair whose figures are written down."""
MOST_PAIRS = 400
"""Most pairs whose figures are written down."""
LOST = 2.0
"""A cell whose expected count is below so many standard deviations of the noise is lost in it."""


def measured_content(noisy_counts: NoisyCounts, posterior: Posterior | None) -> dict[str, Any]:
    """Everything about what was measured, as plain values."""
    names = noisy_counts.schema.names
    pairs = measured_pairs(noisy_counts)
    written = [pair for pair in pairs if np.prod(noisy_counts.schema.shape(pair)) <= MOST_WRITTEN][:MOST_PAIRS]
    whole = [m for m in dict.fromkeys(noisy_counts.marginals) if np.prod(noisy_counts.schema.shape(m)) <= 1_000_000]
    subsets = list(dict.fromkeys([*((name,) for name in names), *written, *whole]))
    expected = expected_counts(posterior, subsets) if posterior is not None else {}
    return {
        "columns": list(names),
        "pairs": len(pairs),
        "marginals": [
            marginal_content(noisy_counts, number, expected) for number in range(len(noisy_counts.measurements))
        ],
        "one_way": [column_content(noisy_counts, name, expected) for name in names] if expected else [],
        "two_way": [pair_content(noisy_counts, pair, expected[pair]) for pair in written] if expected else [],
    }


def measured_pairs(noisy_counts: NoisyCounts) -> list[Marginal]:
    """The pairs of columns that were measured together, in the order of the marginals."""
    return list(dict.fromkeys(pair for marginal in noisy_counts.marginals for pair in combinations(marginal, 2)))


def marginal_content(noisy_counts: NoisyCounts, number: int, expected: dict[Marginal, Expected]) -> dict[str, Any]:
    """One measurement: how large its noise is beside its counts."""
    measurement = noisy_counts.measurements[number]
    average = noisy_counts.rows / measurement.values.size
    counts = expected.get(measurement.marginal)
    lost = None if counts is None else int((counts.mean < LOST * measurement.stddev).sum())
    return {
        "columns": list(measurement.marginal),
        "cells": int(measurement.values.size),
        "noise": figure(measurement.stddev),
        "average": figure(average),
        "relative": figure(measurement.stddev / average),
        "lost": lost,
    }


def column_content(noisy_counts: NoisyCounts, name: str, expected: dict[Marginal, Expected]) -> dict[str, Any]:
    """One column: synthetic counts with their band and noisy counts with theirs, level by level."""
    counts, seen = expected[(name,)], observed_counts(noisy_counts, (name,))
    labels = noisy_counts.schema.column(name).labels
    levels = [
        {
            "label": label,
            "synthetic": figure(counts.mean[i]),
            "low": figure(counts.low[i]),
            "high": figure(counts.high[i]),
            "noisy": None if seen is None else figure(seen.counts[i]),
            "noise": None if seen is None else figure(WITHIN * seen.stddev),
        }
        for i, label in enumerate(labels)
    ]
    return {
        "name": name,
        "description": noisy_counts.schema.column(name).description,
        "measured": seen is not None,
        "levels": levels,
    }


def pair_content(noisy_counts: NoisyCounts, pair: Marginal, counts: Expected) -> dict[str, Any]:
    """One measured pair; its longer column comes first, so that it runs down the page."""
    seen = observed_counts(noisy_counts, pair)
    assert seen is not None  # the pair was measured
    turned = counts.mean.shape[1] > counts.mean.shape[0]

    def laid(table: np.ndarray) -> list[list[float]]:
        return [[figure(value) for value in row] for row in (table.T if turned else table)]

    columns = pair[::-1] if turned else pair
    return {
        "columns": list(columns),
        "labels": [list(noisy_counts.schema.column(name).labels) for name in columns],
        "synthetic": laid(counts.mean),
        "low": laid(counts.low),
        "high": laid(counts.high),
        "noisy": laid(seen.counts),
        "noise": figure(WITHIN * seen.stddev),
        "spreads": laid(spreads(noisy_counts.rows, counts, seen)),
    }


def spreads(rows: int, counts: Expected, seen: Observed) -> np.ndarray:
    """How far the noisy counts lie from the model, in units of what sampling and privacy noise make of a count."""
    share = counts.mean / rows
    variance = seen.stddev**2 + rows * share * (1 - share)
    return np.asarray((seen.counts - counts.mean) / np.sqrt(variance))


def figure(value: float, digits: int = 6) -> float:
    """A number with six significant digits: what a reader can use, and the same on every machine."""
    rounded = float(f"{float(value):.{digits}g}")
    return 0.0 if rounded == 0 else rounded


def named_cells(noisy_counts: NoisyCounts) -> Sequence[str]:
    """A name for every measured cell, in the order of the model's expected counts: 'age = [17, 32), income = >50K'."""
    names = []
    for measurement in noisy_counts.measurements:
        labels = [noisy_counts.schema.column(name).labels for name in measurement.marginal]
        for cell in np.ndindex(measurement.values.shape):
            parts = zip(measurement.marginal, labels, cell, strict=True)
            names.append(", ".join(f"{name} = {levels[i]}" for name, levels, i in parts))
    return names
