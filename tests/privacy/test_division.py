"""One budget, several acts: the shares are kept, the whole is used, and never passed."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisewise.errors import BudgetError
from noisewise.privacy.accounting import calibrate, round_distance
from noisewise.privacy.division import Part, divide, together

DELTA = 1e-7


def squared(loss):
    """The squared distance of a loss in the terms of Gaussian noise of size 1."""
    k = loss.max_rows_per_unit
    return math.fsum(2 * k**2 / s**2 for s in loss.stddevs) + math.fsum(round_distance(e) ** 2 for e in loss.rounds)


@settings(max_examples=15, deadline=None)
@given(
    epsilon=st.floats(0.05, 3),
    share=st.floats(0.02, 0.9),
    ways=st.integers(0, 6),
    rounds=st.integers(0, 6),
    weights=st.lists(st.floats(0.25, 4), min_size=1, max_size=6),
    rows=st.integers(1, 3),
)
def test_shares_are_kept_and_the_whole_is_used(epsilon, share, ways, rounds, weights, rows):
    parts = [Part(share=1 - share, weights=tuple(weights))]
    if ways or rounds:
        parts = [Part(share=share, weights=(1.0,) * ways, rounds=rounds), *parts]
    losses = divide(epsilon, DELTA, parts, rows)
    whole = together(losses)

    assert whole.delta(epsilon) <= DELTA
    assert whole.epsilon(DELTA) > epsilon * (1 - 1e-3)
    for part, loss in zip(parts, losses, strict=True):
        wanted = part.share / sum(p.share for p in parts)
        # noise is rounded at the sixth digit: a relative 2e-6 for noise of 1; choices at the ninth, of at least 1e-3
        assert squared(loss) / squared(whole) == pytest.approx(wanted, rel=1e-4)
        assert (len(loss.stddevs), len(loss.rounds)) == (len(part.weights), part.rounds)


def test_a_weight_of_four_halves_the_noise():
    (loss,) = divide(1.0, DELTA, [Part(share=1.0, weights=(1.0, 4.0))])

    assert loss.stddevs[0] == pytest.approx(2 * loss.stddevs[1], rel=1e-6)


def test_one_part_is_what_calibrate_gives():
    for rows in (1, 2):
        (loss,) = divide(0.7, DELTA, [Part(share=0.3, weights=(5.0,) * 4)], rows)
        assert loss.stddevs == calibrate(0.7, DELTA, [1.0] * 4, rows)


def test_a_huge_budget_leaves_noise_at_its_smallest():
    losses = divide(900.0, DELTA, [Part(share=999.0, weights=(1.0,), rounds=1), Part(share=1.0, weights=(1.0,))])

    assert min(s for loss in losses for s in loss.stddevs) == 1.0
    assert together(losses).delta(900.0) <= DELTA


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Part(share=0.0, weights=(1.0,)), "positive numbers"),
        (lambda: Part(share=1.0, weights=(1.0, math.nan)), "positive numbers"),
        (lambda: Part(share=1.0), "Leave this one out"),
        (lambda: divide(1.0, DELTA, [Part(share=1.0, rounds=1)]), "Nothing would be measured"),
        (lambda: together([]), "Name at least one"),
    ],
)
def test_nonsense_is_refused(make, words):
    with pytest.raises(BudgetError, match=words):
        make()
