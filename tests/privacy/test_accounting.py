"""What noise costs: known values, brute force over tiny domains, enumeration by definition, and broken twins."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from noisewise.errors import BudgetError
from noisewise.privacy.accounting import (
    PrivacyLoss,
    calibrate,
    concentrated_delta,
    gaussian_delta,
    round_distance,
    round_up,
)
from oracles.privacy_loss import (
    all_marginals,
    delta_by_enumeration,
    delta_of_exponential_mechanism,
    marginal_counts,
    records,
)

ADULT = 46043**-2
GOLDEN = {0.1: 230.502364, 0.5: 48.869496, 1.0: 25.129545, 2.0: 12.990621, 3.0: 8.868283}  # to the nearest 1e-6


@pytest.mark.parametrize(("epsilon", "stddev"), GOLDEN.items())
def test_known_noise_of_ten_marginals(epsilon, stddev):
    (noise,) = set(calibrate(epsilon, ADULT, [1.0] * 10))

    assert noise == pytest.approx(stddev, abs=1.01e-6)
    assert PrivacyLoss(stddevs=(noise,) * 10).delta(epsilon) <= ADULT
    assert PrivacyLoss(stddevs=(noise - 1.01e-6,) * 10).delta(epsilon) > ADULT  # no larger than it must be


def test_formulas_that_others_use_are_told_apart():
    """Continuous, zCDP, classic and add-or-remove noise differ from the exact one by more than the last digit."""
    exact = calibrate(1.0, ADULT, [1.0] * 10)[0]

    def smallest(enough):
        low, high = 1.0, 100.0
        for _ in range(80):
            low, high = (low, (low + high) / 2) if enough((low + high) / 2) else ((low + high) / 2, high)
        return high

    continuous = smallest(lambda s: gaussian_delta(1.0, math.sqrt(20) / s) <= ADULT)
    concentrated = smallest(lambda s: concentrated_delta(1.0, 10 / s**2) <= ADULT)
    classic = math.sqrt(20) * math.sqrt(2 * math.log(1.25 / ADULT))
    add_or_remove = smallest(lambda s: gaussian_delta(1.0, math.sqrt(10) / s) <= ADULT)

    assert continuous == pytest.approx(25.129463, abs=1e-6)
    assert concentrated == pytest.approx(26.3872, abs=1e-4)
    assert classic == pytest.approx(29.46, abs=5e-3)
    assert add_or_remove == pytest.approx(17.77, abs=5e-3)
    assert add_or_remove < continuous < exact < concentrated < classic
    assert PrivacyLoss(stddevs=(continuous,) * 10).delta(1.0) > ADULT  # the continuous formula would promise too much


@pytest.mark.parametrize("stddev", [1.0, 1.7, 2.9, 3.0, 4.5])
@pytest.mark.parametrize("marginals", [1, 2])
def test_equal_noise_is_exact(stddev, marginals):
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        if marginals == 2 and stddev > 2:
            continue  # too many outcomes to list
        shifts = (1, -1) * marginals
        truth = delta_by_enumeration(epsilon, (stddev,) * len(shifts), shifts)
        ours = PrivacyLoss(stddevs=(stddev,) * marginals).delta(epsilon)
        assert truth <= ours <= truth * (1 + 1e-6) + 1e-15  # 1e-15: the rounding of the list's own sum


@pytest.mark.parametrize("stddevs", [(1.2, 1.9), (1.0, 2.0), (1.5, 1.6)])
@pytest.mark.parametrize("rows", [1, 2])
def test_the_bound_for_unequal_noise_holds(stddevs, rows):
    for epsilon in (0.2, 1.0, 3.0):
        ours = PrivacyLoss(stddevs=stddevs, max_rows_per_unit=rows).delta(epsilon)
        four = tuple(s for s in stddevs for _ in range(2))
        assert delta_by_enumeration(epsilon, four, (rows, -rows) * 2) <= ours


@pytest.mark.parametrize(("stddev", "rows"), [(12.0, 1), (12.0, 2), (30.0, 3)])
def test_the_bound_is_close_to_the_truth_where_noise_is_of_useful_size(stddev, rows):
    """An unmeasurable second marginal forces the bound; the first decides the truth."""
    for epsilon in (0.1, 0.5):
        truth = delta_by_enumeration(epsilon, (stddev, stddev), (rows, -rows))
        ours = PrivacyLoss(stddevs=(stddev, 1e8), max_rows_per_unit=rows).delta(epsilon)
        assert truth * (1 - 1e-9) <= ours <= truth * 1.25
    equal = calibrate(1.0, ADULT, [1.0] * 10)[0]
    nearly = calibrate(1.0, ADULT, [1.0] * 9 + [1.0 + 1e-7])[0]
    assert 1 < nearly / equal < 1.001  # what the bound costs in noise


def test_moving_several_rows_between_two_cells_is_the_worst_a_unit_can_do():
    """All ways in which up to three rows of one unit can leave and enter cells."""
    for stddev, epsilon in product((2.0, 4.0), (0.3, 1.5)):
        worst = delta_by_enumeration(epsilon, (stddev,) * 2, (3, -3))
        for shifts in ((2, 1, -3), (2, -2), (1, -1), (2, -1, -1)):
            assert delta_by_enumeration(epsilon, (stddev,) * len(shifts), shifts) <= worst
        assert worst <= PrivacyLoss(stddevs=(stddev,), max_rows_per_unit=3).delta(epsilon)


@pytest.mark.parametrize("cost", [0.05, 0.5, 2.0])
def test_a_round_of_selection_is_dominated_by_its_gaussian(cost):
    generator = np.random.default_rng(0)
    worst = PrivacyLoss(rounds=(cost,))
    for _ in range(100):
        scores = generator.integers(-20, 20, 5).astype(float)
        others = scores + generator.integers(-1, 2, 5)
        for epsilon in (0.0, cost / 4, cost / 2, cost * 0.9):
            assert delta_of_exponential_mechanism(epsilon, cost, scores, others) <= worst.delta(epsilon) + 1e-15
    # the distance cannot be made smaller: two outcomes with the loss ±cost/2 reach it
    chance = 1 / (1 + math.exp(-cost / 2))
    from scipy.stats import norm

    assert round_distance(cost) == pytest.approx(norm.ppf(chance) - norm.ppf(1 - chance), rel=1e-12)
    for logit in np.linspace(-20, 20, 81):
        level, power = 1 / (1 + math.exp(-logit)), 1 / (1 + math.exp(-logit - cost))
        assert norm.isf(level) - norm.isf(power) <= round_distance(cost) + 1e-9


def test_selection_and_noise_together_cost_less_than_by_concentrated_privacy_alone():
    loss = PrivacyLoss(stddevs=(25.2,) * 10, rounds=(0.025,) * 10)

    assert loss.delta(1.0) < 0.7 * concentrated_delta(1.0, loss.rho)


SIZES = (3, 3, 2, 3)


def test_sensitivity_by_brute_force():
    """Every pair of records, every set of marginals of up to four columns: no move is longer than √2 per marginal."""
    every = records(SIZES)
    marginals = all_marginals(len(SIZES))
    moves = np.array(
        [
            [
                ((marginal_counts([a], SIZES, m) - marginal_counts([b], SIZES, m)) ** 2).sum()
                for m in marginals
            ]
            for a in every
            for b in every[:: max(1, len(every) // 18)]
        ]
    )  # fmt: skip
    generator = np.random.default_rng(1)
    sets = [np.flatnonzero(generator.random(len(marginals)) < 0.4) for _ in range(300)]
    for chosen in [np.arange(len(marginals)), *(np.array([i]) for i in range(len(marginals))), *sets]:
        if len(chosen):
            assert moves[:, chosen].sum(1).max() == 2 * len(chosen)  # reached, and never passed


def test_sensitivity_by_brute_force_for_several_rows_per_unit():
    sizes, rows = (2, 3), 3
    every = records(sizes)
    tables = [list(unit) for unit in combinations_with_replacement(every, rows)]
    for marginal in all_marginals(2):
        counts = [marginal_counts(table, sizes, marginal) for table in tables]
        longest = max(int(((a - b) ** 2).sum()) for a in counts for b in counts)
        assert longest == 2 * rows**2
        assert PrivacyLoss(stddevs=(10.0,), max_rows_per_unit=rows).rho == pytest.approx(longest / (2 * 10.0**2))


def test_losses_add_up():
    first, second = PrivacyLoss(stddevs=(20.0,) * 3), PrivacyLoss(stddevs=(20.0,) * 4)

    assert (first + second) == PrivacyLoss(stddevs=(20.0,) * 7)
    assert (first + second).rho == pytest.approx(first.rho + second.rho, rel=1e-12)
    assert max(first.epsilon(1e-9), second.epsilon(1e-9)) < (first + second).epsilon(1e-9)
    assert (first + second).epsilon(1e-9) < first.epsilon(5e-10) + second.epsilon(5e-10)


@settings(max_examples=12, deadline=None)
@example(epsilon=2.045043115421888, exponent=-12.0, marginals=1, rows=1)  # a step of rounding must be one step
@given(
    epsilon=st.floats(0.05, 8), exponent=st.floats(-14, -3), marginals=st.integers(1, 30), rows=st.integers(1, 4)
)  # fmt: skip
def test_epsilon_delta_and_noise_agree_both_ways(epsilon, exponent, marginals, rows):
    delta = 10.0**exponent
    noise = calibrate(epsilon, delta, [1.0] * marginals, rows)
    loss = PrivacyLoss(stddevs=noise, max_rows_per_unit=rows)

    assert loss.delta(epsilon) <= delta
    assert loss.epsilon(delta) <= epsilon + 1e-6
    if noise[0] > 1:
        slightly_less = tuple(max(1.0, s * (1 - 1e-5)) for s in noise)
        assert PrivacyLoss(stddevs=slightly_less, max_rows_per_unit=rows).delta(epsilon) > delta


@settings(max_examples=30, deadline=None)
@given(
    stddevs=st.lists(st.floats(1, 200), min_size=1, max_size=6),
    epsilon=st.floats(0, 5),
    more=st.floats(0.01, 3),
)
def test_more_noise_and_larger_epsilon_never_cost_more(stddevs, epsilon, more):
    loss = PrivacyLoss(stddevs=tuple(stddevs), rounds=(0.1,))
    quieter = PrivacyLoss(stddevs=tuple(s * (1 + more) for s in stddevs), rounds=(0.1,))

    assert quieter.delta(epsilon) <= loss.delta(epsilon) * (1 + 1e-9)
    assert loss.delta(epsilon + more) <= loss.delta(epsilon) * (1 + 1e-9)


def test_concentrated_delta_is_the_best_order_of_many():
    for epsilon, rho in ((1.0, 0.015), (0.1, 0.001), (5.0, 0.5)):
        orders = 1 + np.logspace(-4, 4, 400_001)
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        assert concentrated_delta(epsilon, rho) == pytest.approx(min(1.0, math.exp(logs.min())), rel=1e-6)


def test_rounding_goes_up():
    assert round_up(1.0000001) == 1.000001
    assert round_up(1.000001) == 1.000001
    epsilon = PrivacyLoss(stddevs=(25.0,) * 10).epsilon(ADULT)
    assert epsilon == round_up(epsilon)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PrivacyLoss(stddevs=(0.0,)), "must lie between 1"),
        (lambda: PrivacyLoss(stddevs=(math.nan,)), "must lie between 1"),
        (lambda: PrivacyLoss(stddevs=(2.0,), max_rows_per_unit=0), "at least one row"),
        (lambda: PrivacyLoss(rounds=(0.0,)), "positive, finite"),
        (lambda: PrivacyLoss() + PrivacyLoss(max_rows_per_unit=2), "do not add up"),
        (lambda: calibrate(1.0, 1e-9, []), "positive numbers"),
        (lambda: calibrate(1.0, 1e-9, [1.0, -1.0]), "positive numbers"),
        (lambda: calibrate(0.1, 1e-9, [1.0], rounds=[1.0]), "smaller share"),
        (lambda: calibrate(1e-12, 1e-25, [1.0] * 10), "too small for any useful noise"),
        (lambda: PrivacyLoss(stddevs=(2.0,)).epsilon(0.0), "between 0 and 1"),
    ],
)
def test_nonsense_is_refused(make, words):
    with pytest.raises(BudgetError, match=words):
        make()


def test_nothing_costs_nothing():
    assert PrivacyLoss().delta(0.0) == 0.0
    assert PrivacyLoss().epsilon(1e-9) == 0.0
    assert PrivacyLoss(rounds=(0.5,)).delta(0.5) == 0.0  # pure
