"""Marginals that are counted as parts of larger tables: each is part of one, none is too large, and sums are right."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from noisewise.confidential.joining import MOST_CELLS, Groups, added, joined, summed

NAMES = [f"v{i}" for i in range(8)]
SOME = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)
SETS = st.lists(SOME, min_size=1, max_size=9)
SIZES = st.fixed_dictionaries({name: st.integers(1, 60) for name in NAMES})


@given(SETS, SIZES)
def test_every_set_is_part_of_one_and_none_grows_too_large(sets, sizes):
    found = joined(sets, sizes)

    assert all(any({*wanted} <= {*columns} for columns in found) for wanted in sets)
    assert len(found) <= len({frozenset(wanted) for wanted in sets})
    for columns in found:
        alone = any({*wanted} == {*columns} for wanted in sets)
        assert alone or prod(sizes[name] for name in columns) <= MOST_CELLS


def test_sets_that_share_columns_are_joined_and_others_are_not():
    sizes = {"a": 10, "b": 10, "c": 10, "d": 10, "e": 1000}

    assert joined([("a", "b"), ("b", "c"), ("d",)], sizes) == [("a", "b", "c"), ("d",)]
    assert joined([("a", "e"), ("b", "e")], sizes) == [("a", "e"), ("b", "e")]


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1), st.integers(0, 20))
def test_sums_over_columns_and_parts_are_the_counts_of_the_rows(rows, cut):
    def groups(codes):
        different, totals = np.unique(np.array(codes).reshape(-1, 3), axis=0, return_counts=True)
        return Groups(codes=different, totals=totals)

    whole = added([groups(rows[:cut]), groups(rows[cut:])])
    found = summed(whole, ("a", "b", "c"), ("c", "a"))

    counted = {tuple(code): int(total) for code, total in zip(found.codes.tolist(), found.totals, strict=True)}
    assert counted == {(c, a): sum(row[0] == a and row[2] == c for row in rows) for a, _, c in rows}
