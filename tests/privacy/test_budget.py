"""A budget is a value: its parts add up to it, exactly, and there is no way to a negative one."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisewise.errors import BudgetError, DataError
from noisewise.privacy.budget import Budget

EPSILONS = st.floats(1e-6, 1000)
DELTAS = st.floats(1e-25, 0.5)


@settings(max_examples=200, deadline=None)
@given(EPSILONS, DELTAS, st.lists(st.floats(0.01, 100), min_size=1, max_size=8))
def test_parts_never_pass_the_whole_and_lose_next_to_nothing(epsilon, delta, shares):
    parts = Budget(epsilon, delta).split(*shares)

    for name, whole in (("epsilon", epsilon), ("delta", delta)):
        total = sum(Fraction(getattr(part, name)) for part in parts)
        assert total <= Fraction(whole)
        assert float(total) == pytest.approx(whole, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(EPSILONS, DELTAS, st.floats(0.01, 0.99))
def test_what_is_taken_and_what_is_left_make_the_whole(epsilon, delta, share):
    whole = Budget(epsilon, delta)
    taken, _ = whole.split(share, 1 - share)
    left = whole - taken

    assert Fraction(taken.epsilon) + Fraction(left.epsilon) <= Fraction(epsilon)
    assert Fraction(taken.delta) + Fraction(left.delta) <= Fraction(delta)
    with pytest.raises(BudgetError, match="nothing would be left"):
        left - whole


def test_the_same_budget_is_not_spent_twice():
    whole = Budget(1.0, 1e-9)

    with pytest.raises(BudgetError, match="nothing would be left"):
        whole - whole
    with pytest.raises(BudgetError, match="nothing would be left"):
        whole - Budget(0.6, 5e-10) - Budget(0.6, 1e-10)


def test_a_budget_does_not_change():
    with pytest.raises(AttributeError):
        Budget(1.0).epsilon = 2.0


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e6, True, "1", None])
def test_absurd_epsilons_are_refused(epsilon):
    with pytest.raises((BudgetError, TypeError)) as caught:
        Budget(epsilon)
    assert isinstance(caught.value, BudgetError) or not isinstance(epsilon, float | int)


@pytest.mark.parametrize("delta", [0.0, -1e-9, 1.0, 2.0, math.nan, 1e-40])
def test_absurd_deltas_are_refused(delta):
    with pytest.raises(BudgetError):
        Budget(1.0, delta)


def test_delta_is_settled_by_the_public_number_of_rows():
    assert Budget(1.0).resolved(1000).delta == 1e-6
    assert Budget(1.0, 1e-5).resolved(1000).delta == 1e-5
    for budget, rows in ((Budget(1.0, 1e-3), 1000), (Budget(1.0), 1), (Budget(1.0), 0)):
        with pytest.raises(DataError) as caught:
            budget.resolved(rows)
        assert str(rows) not in str(caught.value).replace("1/rows", "")


def test_mixing_settled_and_unsettled_budgets_is_refused():
    with pytest.raises(BudgetError, match="Settle both"):
        Budget(1.0, 1e-9) - Budget(0.5)


@pytest.mark.parametrize("shares", [(), (0,), (1, -1), (math.inf,), (math.nan,)])
def test_shares_must_be_positive(shares):
    with pytest.raises(BudgetError, match="positive shares"):
        Budget(1.0).split(*shares)
