"""The chances of every tree that a private selection may choose, by following every sequence of choices.

Scores are counted from the rows by loops, without the code under test; only what is public by then is shared.
"""

import math
from itertools import combinations, product

import numpy as np


def pair_score(table, sizes, pair, expected) -> int:
    """Σ |count − expected| over the cells of a pair, counted row by row."""
    total = 0
    for cell in product(*(range(sizes[column]) for column in pair)):
        count = sum(1 for record in table if tuple(record[column] for column in pair) == cell)
        total += abs(count - int(expected[cell]))
    return total


def independent(one_way, pair, rows):
    """Counts expected if two columns were independent, as whole numbers, from public one-way counts."""
    shares = [np.maximum(one_way[column], 0) for column in pair]
    shares = [s / s.sum() if s.sum() else np.full(len(s), 1 / len(s)) for s in shares]
    return np.rint(rows * np.outer(*shares)).astype(int)


def tree_chances(scores, columns, epsilon, sensitivity, tied=()):
    """Probability of each sequence of pairs under the exponential mechanism; `scores` maps pairs to scores."""
    found = {}

    def follow(groups, sequence, chance):
        if len(groups) == 1:
            found[sequence] = found.get(sequence, 0.0) + chance
            return
        group_of = {column: i for i, group in enumerate(groups) for column in group}
        free = [pair for pair in combinations(columns, 2) if group_of[pair[0]] != group_of[pair[1]]]
        weights = np.array([epsilon * scores[pair] / (2 * sensitivity) for pair in free])
        weights = np.exp(weights - weights.max())
        for pair, weight in zip(free, weights / weights.sum(), strict=True):
            a, b = groups[group_of[pair[0]]], groups[group_of[pair[1]]]
            rest = [group for group in groups if group not in (a, b)]
            follow([*rest, a | b], (*sequence, pair), chance * weight)

    groups = [frozenset([column]) for column in columns]
    for pair in tied:
        a, b = (next(g for g in groups if column in g) for column in pair)
        if a != b:
            groups = [*(g for g in groups if g not in (a, b)), a | b]
    follow(groups, (), 1.0)
    assert math.isclose(sum(found.values()), 1.0, rel_tol=1e-9)
    return found
