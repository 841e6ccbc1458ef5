"""How far synthetic marginals lie from the real ones: total-variation distance of all 1-way and 2-way marginals."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa

from experiments.task import Confidential, encode


def distances(datasets: Sequence[pa.Table], confidential: Confidential) -> dict[str, float]:
    """Mean total-variation distance by number of columns, with proportions averaged over the datasets first.

    For one dataset alone too, under "1-way, one dataset" and so on, if there are several.
    """
    schema = confidential.schema
    shares, found = np.zeros((sum(schema.sizes),) * 2), dict[str, float]()
    for number, dataset in enumerate(datasets):
        codes = encode(dataset, schema)
        shares += together(codes, schema.sizes) / len(codes)
        if number == 0:
            found = _means(shares, 1, confidential)
    if len(datasets) == 1:
        return found
    single = {f"{name}, one dataset": value for name, value in found.items()}
    return _means(shares, len(datasets), confidential) | single


def together(codes: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """How many rows have each pair of levels, of all columns; on the diagonal each level alone."""
    counted = np.zeros((sum(sizes),) * 2)
    starts = np.cumsum([0, *sizes[:-1]])
    for part in np.array_split(codes, -(-len(codes) // 100_000)):  # single precision counts up to 2^24 exactly
        has = np.zeros((len(part), sum(sizes)), np.float32)
        has[np.arange(len(part))[:, None], part + starts] = 1.0
        counted += has.T @ has
    return counted


def _means(shares: np.ndarray, datasets: int, confidential: Confidential) -> dict[str, float]:
    starts = np.cumsum([0, *confidential.schema.sizes])
    real = together(confidential.codes, confidential.schema.sizes) / confidential.rows
    off = np.abs(shares / datasets - real)
    blocks = [slice(*ends) for ends in pairwise(starts)]
    far = {
        1: [0.5 * np.diag(off)[block].sum() for block in blocks],
        2: [0.5 * off[one, other].sum() for one, other in combinations(blocks, 2)],
    }
    return {f"{k}-way": float(np.mean(values)) for k, values in far.items()}
