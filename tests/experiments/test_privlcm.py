"""The latent class sampler: its noise, its moves, and its posterior on a mixture that is known."""

from itertools import combinations, product

import numpy as np
import pytest

from experiments.peers.privlcm import PrivLcm, Sampler, integer_moves, two_sided_geometric


def _sampler(counts: np.ndarray, cost: float, settings: PrivLcm) -> Sampler:
    tables = tuple(combinations(range(counts.ndim), 2))
    axes = range(counts.ndim)
    sums = [counts.sum(axis=tuple(axis for axis in axes if axis not in table)) for table in tables]
    noisy = np.concatenate([s.reshape(-1) for s in sums])
    return Sampler(sizes=counts.shape, tables=tables, noisy=noisy, cost=cost, rows=int(counts.sum()), settings=settings)


def test_the_noise_is_two_sided_geometric():
    decay = np.exp(-0.5)
    noise = two_sided_geometric(np.zeros(40_000, int), decay, np.random.default_rng(1))

    assert noise.mean() == pytest.approx(0, abs=5 * noise.std() / 200)
    # variance 2·decay/(1 - decay)², its own standard error about √5/200 of it: excess kurtosis 3
    assert noise.var() == pytest.approx(2 * decay / (1 - decay) ** 2, rel=5 * 5**0.5 / 200)


def test_moves_keep_the_number_of_rows_and_those_of_three_columns_keep_all_two_way_tables():
    sizes = (2, 3, 2)
    moves = integer_moves(sizes)

    assert len(moves) == 1 * 6 + 3 * 4 + 1 * 6 + 3 * 2 + 1 * 3 + 3 * 2 + 3  # one column, two columns, three columns
    for cells, signs in moves:
        change = np.zeros(np.prod(sizes))
        change[cells] = signs
        assert change.sum() == 0
        if len(cells) == 8:
            table = change.reshape(sizes)
            assert all((table.sum(axis=axis) == 0).all() for axis in range(3))


def test_it_recovers_a_known_mixture():
    weights, profiles = np.array([0.3, 0.7]), np.array([[0.9, 0.8, 0.9], [0.2, 0.1, 0.3]])
    cells = np.array(list(product((0, 1), repeat=3)))
    truth = sum(w * np.prod(np.where(cells == 0, p, 1 - p), axis=1) for w, p in zip(weights, profiles, strict=True))
    counts = np.round(20_000 * truth).astype(int).reshape(2, 2, 2)
    settings = PrivLcm(chains=20, warm_up=400, draws=10, thinning=10)

    draws = _sampler(counts, cost=1.0, settings=settings).run(np.random.default_rng(1))

    flat = draws.reshape(-1, 8)
    assert flat.sum(axis=1) == pytest.approx(np.ones(len(flat)))
    # Two-way tables are known to about a row, so that every pair's share is; 20,000 rows leave 0.0035 of sampling.
    pairs = flat.reshape(-1, 2, 2, 2).mean(axis=0).sum(axis=2) - truth.reshape(2, 2, 2).sum(axis=2)
    assert np.abs(pairs).max() < 0.006
    assert np.abs(flat.mean(axis=0) - truth).max() < 0.02  # the three-way part rests on the prior


def test_without_information_it_returns_to_the_prior():
    settings = PrivLcm(chains=40, warm_up=200, draws=5, thinning=20)
    counts = np.array([[90, 0], [0, 10]])

    told = _sampler(counts, cost=5.0, settings=settings).run(np.random.default_rng(1)).reshape(-1, 4).mean(axis=0)
    untold = _sampler(counts, cost=1e-9, settings=settings).run(np.random.default_rng(1)).reshape(-1, 4).mean(axis=0)

    assert told == pytest.approx([0.9, 0, 0, 0.1], abs=0.08)
    assert untold == pytest.approx([0.25] * 4, abs=0.15)  # 200 draws of cells whose prior sd is about 0.25, correlated
