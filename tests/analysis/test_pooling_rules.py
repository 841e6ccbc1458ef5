"""Each rule against an independent oracle: numbers worked by hand, closed forms, and sampling.

By hand: estimates 1, 2, 3, 6 have mean 3, squared deviations 4 + 1 + 0 + 9 = 14, so between = 14/3; with m = 4
the factor 1 + 1/m is 5/4 and (1 + 1/m) between = 35/6.
"""

import numpy as np
import pytest
from scipy import stats

from noisewise.analysis.mixtures import FewDatasets, PosteriorMixture
from noisewise.analysis.other_data import MissingDataRule, PartiallySynthetic
from noisewise.analysis.pooling import FullySynthetic, FullySyntheticNormal
from noisewise.errors import AnalysisError

ESTIMATES = np.array([1.0, 2.0, 3.0, 6.0])
WITHIN_2 = np.array([1.0, 1.0, 3.0, 3.0])  # within = 2
ALL_RULES = [
    FullySynthetic(),
    FullySyntheticNormal(),
    FewDatasets(),
    PosteriorMixture(),
    MissingDataRule(),
    PartiallySynthetic(),
]


def test_fully_synthetic_by_hand():
    pooled = FullySynthetic().pool(ESTIMATES, WITHIN_2)

    assert pooled.estimate == 3
    assert pooled.between == pytest.approx(14 / 3)
    assert pooled.variance == pytest.approx(35 / 6 - 2)
    assert pooled.dof == pytest.approx(3 * (1 - 12 / 35) ** 2)
    assert pooled.fallback == ""
    half = stats.t.ppf(0.975, 3 * (23 / 35) ** 2) * np.sqrt(23 / 6)
    assert pooled.reference.interval(0.05) == pytest.approx((3 - half, 3 + half))
    assert pooled.reference.pvalue(0.0) == pytest.approx(2 * stats.t.sf(3 / np.sqrt(23 / 6), 3 * (23 / 35) ** 2))


def test_fully_synthetic_falls_back_to_the_within_variance_scaled_by_rows():
    pooled = FullySynthetic().pool(ESTIMATES, np.full(4, 10.0), rows=500, original_rows=1000)

    assert pooled.variance == pytest.approx(0.5 * 10)  # T = 35/6 - 10 < 0
    assert pooled.dof == pytest.approx(3 * (1 - 60 / 35) ** 2)  # the published ν, also with the fallback
    assert "(rows / original_rows)" in pooled.fallback


def test_the_fallback_needs_both_numbers_of_rows():
    with pytest.raises(AnalysisError, match="original_rows"):
        FullySynthetic().pool(ESTIMATES, np.full(4, 10.0), rows=500)


def test_a_total_next_to_zero_gives_the_whole_line_not_a_quiet_number():
    pooled = FullySynthetic().pool(ESTIMATES, np.full(4, 35 / 6 - 1e-9))

    assert pooled.reference.interval(0.05) == (-np.inf, np.inf)
    assert pooled.reference.pvalue(0.0) == 1.0
    assert "degrees of freedom" in pooled.caution


def test_the_normal_version_has_the_same_variance_and_a_normal_quantile():
    pooled = FullySyntheticNormal().pool(ESTIMATES, WITHIN_2)

    half = stats.norm.ppf(0.95) * np.sqrt(23 / 6)
    assert pooled.reference.interval(0.1) == pytest.approx((3 - half, 3 + half))
    assert pooled.dof == np.inf


def test_missing_data_rule_by_hand():
    pooled = MissingDataRule().pool(ESTIMATES, WITHIN_2)

    assert pooled.variance == pytest.approx(35 / 6 + 2)
    assert pooled.dof == pytest.approx(3 * (1 + 12 / 35) ** 2)


def test_partially_synthetic_rule_by_hand():
    pooled = PartiallySynthetic().pool(ESTIMATES, WITHIN_2)

    assert pooled.variance == pytest.approx(14 / 12 + 2)
    assert pooled.dof == pytest.approx(3 * (1 + 12 / 7) ** 2)


def test_the_mixture_is_the_average_of_the_posteriors():
    pooled = PosteriorMixture(enough_datasets=4).pool(ESTIMATES, WITHIN_2, rows=10_000, original_rows=1000)

    parts = [stats.norm(center, np.sqrt(variance)) for center, variance in zip(ESTIMATES, WITHIN_2, strict=True)]
    low, high = pooled.reference.interval(0.1)
    assert np.mean([part.cdf(low) for part in parts]) == pytest.approx(0.05, abs=1e-12)
    assert np.mean([part.sf(high) for part in parts]) == pytest.approx(0.05, abs=1e-12)
    second = np.mean([part.var() + part.mean() ** 2 for part in parts])
    assert pooled.variance == pytest.approx(second - 3**2)
    assert pooled.caution == ""


@pytest.mark.parametrize("rows", [None, 1000, 9999])
def test_the_mixture_warns_unless_synthetic_rows_are_many(rows):
    caution = PosteriorMixture().pool(ESTIMATES, WITHIN_2, rows=rows, original_rows=1000).caution

    assert "mixing posteriors" in caution


def test_the_mixture_warns_when_datasets_are_few():
    caution = PosteriorMixture().pool(ESTIMATES, WITHIN_2, rows=10_000, original_rows=1000).caution

    assert "needs about 100 datasets, here 4" in caution


@pytest.mark.parametrize("variances", [WITHIN_2, np.full(4, 5.0)], ids=["spread-above-within", "spread-below-within"])
def test_few_datasets_equals_sampling_the_posterior(variances):
    """The published way: sample spread given that it exceeds within, then the estimand."""
    pooled = FewDatasets().pool(ESTIMATES, variances)

    random, within = np.random.default_rng(0), variances.mean()
    spread = 14 / random.chisquare(3, 2_000_000)
    spread = spread[spread > within]
    draws = random.normal(3, np.sqrt(1.25 * (spread - within) + within / 4))
    for alpha in (0.5, 0.2, 0.05):
        below = np.mean(draws[:, None] < np.array(pooled.reference.interval(alpha)), axis=0)
        # A share of half a million draws has a standard error below 0.0008; four of them.
        assert below == pytest.approx([alpha / 2, 1 - alpha / 2], abs=0.003)


def test_few_datasets_stays_finite_far_in_the_tail():
    estimates = 1 + 1e-4 * np.random.default_rng(0).normal(size=400)
    pooled = FewDatasets().pool(estimates, np.full(400, 1.0))

    assert np.isfinite(pooled.reference.interval(0.05)).all()
    # spread is next to within, so that within / m is the floor of the variance
    assert 1 / 400 <= pooled.variance < 3 / 400


def test_on_normal_data_the_rule_recovers_the_posterior_variance():
    """Exact draws: estimate_i ~ N(theta_i, v), theta_i ~ N(c, p). The pooled variance tends to p."""
    random, m, p, v = np.random.default_rng(1), 20_000, 0.04, 0.09
    estimates = random.normal(0, np.sqrt(p), m) + random.normal(0, np.sqrt(v), m)
    pooled = FullySynthetic().pool(estimates, np.full(m, v))

    # var(between) = 2 (p + v)² / m, so the standard error of the variance is 0.0013; four of them
    assert pooled.variance == pytest.approx(p, abs=0.0052)
    wrong = MissingDataRule().pool(estimates, np.full(m, v))
    assert abs(wrong.variance - p) > 0.0052  # the broken twin


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: type(rule).__name__)
class TestEveryRule:
    def test_shifts_and_scales_with_the_estimand(self, rule):
        plain = rule.pool(ESTIMATES, WITHIN_2, rows=10, original_rows=10)
        moved = rule.pool(7 - 2 * ESTIMATES, 4 * WITHIN_2, rows=10, original_rows=10)

        assert moved.estimate == pytest.approx(7 - 2 * plain.estimate)
        assert moved.variance == pytest.approx(4 * plain.variance, rel=1e-9)
        low, high = plain.reference.interval(0.1)
        assert moved.reference.interval(0.1) == pytest.approx((7 - 2 * high, 7 - 2 * low), rel=1e-9)

    def test_its_p_value_and_interval_agree(self, rule):
        reference = rule.pool(ESTIMATES, WITHIN_2, rows=10, original_rows=10).reference

        low, high = reference.interval(0.05)
        assert reference.pvalue(low) == pytest.approx(0.05, rel=1e-6)
        assert reference.pvalue(high) == pytest.approx(0.05, rel=1e-6)

    def test_covariance_of_one_term_is_its_variance(self, rule):
        pooled = rule.pool(ESTIMATES, WITHIN_2, rows=10, original_rows=10)
        matrix = rule.total_covariance(np.array([[pooled.within]]), np.array([[pooled.between]]), 4)

        if not isinstance(rule, FewDatasets):  # whose variance is a quantile's width
            assert matrix[0, 0] == pytest.approx(pooled.variance)

    def test_refuses_one_dataset(self, rule):
        with pytest.raises(AnalysisError, match="at least 2 datasets, got 1"):
            rule.pool(ESTIMATES[:1], WITHIN_2[:1], rows=10, original_rows=10)

    def test_refuses_what_is_not_a_number(self, rule):
        with pytest.raises(AnalysisError, match=r"dataset 1 .*not a finite number"):
            rule.pool(np.array([1, np.nan, 2.0]), np.ones(3), rows=10, original_rows=10)

    def test_refuses_negative_variances(self, rule):
        with pytest.raises(AnalysisError, match="negative"):
            rule.pool(ESTIMATES, -WITHIN_2, rows=10, original_rows=10)

    def test_names_itself_its_source_and_what_it_is_about(self, rule):
        assert rule.name
        assert rule.source
        assert rule.estimand


@pytest.mark.parametrize("rule", [FullySynthetic(), FullySyntheticNormal()], ids=["t", "normal"])
def test_identical_datasets_are_pooled_with_a_caution(rule):
    pooled = rule.pool(np.full(5, 2.0), np.full(5, 0.1), rows=100, original_rows=50)

    assert pooled.variance == pytest.approx(0.2)
    assert "same in all datasets" in pooled.caution
    assert pooled.fallback


def test_identical_datasets_without_variances_are_refused():
    with pytest.raises(AnalysisError, match="no uncertainty"):
        FullySynthetic().pool(np.full(5, 2.0), np.zeros(5), rows=10, original_rows=10)
    with pytest.raises(AnalysisError, match="copies"):
        FewDatasets().pool(np.full(5, 2.0), np.ones(5))
