"""How far synthetic marginals lie from the real ones: total-variation distance of all 1-way and 2-way marginals."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from experiments.task import Confidential, encode, tabulate
from noisewise.workload import Marginal


def distances(datasets: Sequence[pa.Table], confidential: Confidential) -> dict[str, float]:
    """Mean total-variation distance by number of columns, with proportions averaged over the datasets first.

    For one dataset alone too, under "1-way, one dataset" and so on, if there are several.
    """
    schema = confidential.schema
    marginals = [c for k in (1, 2) for c in combinations(schema.names, k)]
    shares = {marginal: np.zeros(schema.shape(marginal)) for marginal in marginals}
    found: dict[str, float] = {}
    for number, dataset in enumerate(datasets):
        codes = encode(dataset, schema)
        for marginal in marginals:
            shares[marginal] += tabulate(codes, schema, marginal) / len(codes)
        if number == 0:
            found = _means(shares, 1, confidential)
    if len(datasets) == 1:
        return found
    single = {f"{name}, one dataset": value for name, value in found.items()}
    return _means(shares, len(datasets), confidential) | single


def _means(shares: dict[Marginal, np.ndarray], datasets: int, confidential: Confidential) -> dict[str, float]:
    far = {
        marginal: 0.5 * np.abs(sums / datasets - confidential.counts(marginal) / confidential.rows).sum()
        for marginal, sums in shares.items()
    }
    return {f"{k}-way": float(np.mean([tv for m, tv in far.items() if len(m) == k])) for k in (1, 2)}
