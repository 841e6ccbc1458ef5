"""The pooled result: like one of statsmodels where it can be, and more outspoken where it must be."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from noisewise.analysis import (
    DirectWald,
    Estimates,
    FewDatasets,
    FullySynthetic,
    MissingDataRule,
    ReiterWald,
    analyze,
    ols,
    pool,
)
from noisewise.errors import AnalysisError

TERMS = ("Intercept", "x", "race[T.Black]", "race[T.Other]")


def estimates(datasets=60, spread=0.2, within=0.1, seed=0, terms=TERMS, **more):
    """Estimates whose spread is well above their variances, correlated between terms."""
    random, size = np.random.default_rng(seed), len(terms)
    root = np.linalg.cholesky(0.5 * np.eye(size) + 0.5)
    values = np.arange(size) + spread * random.normal(size=(datasets, size)) @ root.T
    covariances = np.broadcast_to(within**2 * (0.7 * np.eye(size) + 0.3), (datasets, size, size)).copy()
    return Estimates(terms=terms, values=values, covariances=covariances, used=np.ones((datasets, size), bool), **more)


@pytest.fixture
def pooled():
    return pool(estimates(), rows=500, original_rows=1000)


def test_the_numbers_of_a_statsmodels_result(pooled):
    within, between = 0.01, pooled.estimates.values.var(axis=0, ddof=1)
    total = (1 + 1 / 60) * between - within
    dof = 59 * (1 - within / ((1 + 1 / 60) * between)) ** 2

    np.testing.assert_allclose(pooled.params, pooled.estimates.values.mean(axis=0))
    np.testing.assert_allclose(pooled.bse, np.sqrt(total))
    np.testing.assert_allclose(pooled.tvalues, pooled.params / pooled.bse)
    np.testing.assert_allclose(pooled.df, dof)
    np.testing.assert_allclose(pooled.pvalues, 2 * stats.t.sf(abs(pooled.tvalues), dof))
    half = stats.t.ppf(0.95, dof) * pooled.bse
    np.testing.assert_allclose(pooled.conf_int(0.1), np.stack([pooled.params - half, pooled.params + half], axis=1))
    for series in (pooled.params, pooled.bse, pooled.tvalues, pooled.pvalues, pooled.conf_int()):
        assert tuple(series.index) == TERMS


def test_the_covariance_matrix_has_the_variances_on_its_diagonal(pooled):
    between = np.cov(pooled.estimates.values, rowvar=False)
    within = pooled.estimates.covariances.mean(axis=0)

    np.testing.assert_allclose(pooled.cov_params(), (1 + 1 / 60) * between - within)
    np.testing.assert_allclose(np.diagonal(pooled.cov_params()), pooled.bse**2)
    assert pooled.covariance_fallback == ""


def test_a_matrix_that_is_no_covariance_is_mended_and_says_so():
    few = pool(estimates(datasets=4, spread=0.12), rule=FullySynthetic(), rows=500, original_rows=500)

    matrix = few.cov_params().to_numpy()
    assert np.linalg.eigvalsh(matrix)[0] >= -1e-15
    np.testing.assert_allclose(np.diagonal(matrix), few.bse**2)
    assert "not positive definite" in few.covariance_fallback


def test_the_information_lost_is_against_the_confidential_rows(pooled):
    # 500 synthetic rows for 1,000 confidential ones: the confidential data would have half the variance within
    np.testing.assert_allclose(pooled.information_lost, 1 - 0.5 * 0.01 / pooled.bse**2)
    with pytest.raises(AnalysisError, match="Give both"):
        _ = pool(estimates()).information_lost


def test_the_joint_test_is_hotellings_with_the_pooled_matrix(pooled):
    test = pooled.wald_test("race", values=[2.0, 3.1])

    chosen = pooled.cov_params().to_numpy()[2:, 2:]
    distance = pooled.params.to_numpy()[2:] - [2.0, 3.1]
    within, between = 0.01 * (0.7 * np.eye(2) + 0.3), np.cov(pooled.estimates.values[:, 2:], rowvar=False)
    ratio = (1 + 1 / 60) * np.trace(between @ np.linalg.inv(within)) / 2
    dof = 59 * (1 - 1 / ratio) ** 2
    statistic = distance @ np.linalg.inv(chosen) @ distance / 2 * (dof - 1) / dof
    assert (test.df_num, test.df_denom) == (2, pytest.approx(dof - 1))
    assert test.statistic == pytest.approx(statistic)
    assert test.pvalue == pytest.approx(stats.f.sf(statistic, 2, dof - 1))


def test_reiters_joint_test_in_the_papers_letters(pooled):
    test = pooled.wald_test(["race"], values=2.5, method=ReiterWald())

    m, k, q = 60, 2, pooled.params.to_numpy()[2:] - 2.5
    u, b = 0.01 * (0.7 * np.eye(2) + 0.3), np.cov(pooled.estimates.values[:, 2:], rowvar=False)
    r, t = (1 + 1 / m) * np.trace(b @ np.linalg.inv(u)) / k, k * (m - 1)
    assert test.statistic == pytest.approx(q @ np.linalg.inv(u) @ q / (k * (r - 1)))
    assert test.df_denom == pytest.approx(4 + (t - 4) * (1 - (1 - 2 / t) / r) ** 2)
    assert "Reiter 2005" in str(test)


def test_one_coefficient_tested_jointly_is_its_t_test(pooled):
    test = pooled.wald_test("x", method=DirectWald())

    assert test.statistic == pytest.approx(pooled.tvalues["x"] ** 2)
    assert test.pvalue == pytest.approx(pooled.pvalues["x"])


@pytest.mark.parametrize(
    ("words", "matrix", "right"),
    [
        ("race", [[0, 0, 1, 0], [0, 0, 0, 1]], [0, 0]),
        (["x", "race[T.Other]"], [[0, 1, 0, 0], [0, 0, 0, 1]], [0, 0]),
        ("race[T.Black] = race[T.Other]", [[0, 0, 1, -1]], [0]),
        ("x = 0.5, 2 * race[T.Black] = 1", [[0, 1, 0, 0], [0, 0, 2, 0]], [0.5, 1]),
    ],
)
def test_hypotheses_in_words_are_those_in_numbers(pooled, words, matrix, right):
    assert pooled.wald_test(words) == pooled.wald_test(np.array(matrix), values=right)


@pytest.mark.parametrize(
    ("hypothesis", "values", "message"),
    [
        ("rce", 0.0, "no term 'rce'"),
        ("x == ", 0.0, "Cannot read the hypothesis"),
        ("y = 1", 0.0, "Cannot read the hypothesis"),
        (np.eye(3), 0.0, "3 columns for 4 terms"),
        ("race", [1.0, 2.0, 3.0], "3 values for 2 constraints"),
        (["x", "x"], 0.0, "repeat each other"),
    ],
)
def test_hypotheses_that_make_no_sense(pooled, hypothesis, values, message):
    with pytest.raises(AnalysisError, match=message):
        pooled.wald_test(hypothesis, values=values)


def test_joint_tests_are_for_fully_synthetic_data_only():
    with pytest.raises(AnalysisError, match="NOT synthetic"):
        pool(estimates(), rule=MissingDataRule()).wald_test("x")


def test_two_few_datasets_for_the_whole_matrix_are_tested_by_reiters_rule():
    few = pool(estimates(datasets=4), rows=500, original_rows=500)

    assert "Reiter" in few.wald_test("race").method
    with pytest.raises(AnalysisError, match="too few"):
        few.wald_test("race", method=DirectWald())


def test_linear_combinations_are_pooled_within_each_dataset(pooled):
    difference = pooled.difference("race[T.Other]", "race[T.Black]")

    each = pooled.estimates.values[:, 3] - pooled.estimates.values[:, 2]
    variances = np.full(60, 0.01 * (1 + 1 - 2 * 0.3))
    expected = FullySynthetic().pool(each, variances)
    assert difference.params.iloc[0] == pytest.approx(expected.estimate)
    assert difference.bse.iloc[0] == pytest.approx(expected.variance**0.5)


def test_the_frame_is_tidy_with_brooms_names(pooled):
    frame = pooled.summary_frame()

    assert list(frame.columns[:8]) == [
        "term", "estimate", "std.error", "statistic", "df", "p.value", "conf.low", "conf.high",
    ]  # fmt: skip
    np.testing.assert_allclose(frame[["conf.low", "conf.high"]], pooled.conf_int())


def test_the_summary_in_three_forms(pooled):
    text, html, latex = str(pooled.summary()), pooled.summary().as_html(), pooled.summary().as_latex()

    for form in (text, html, latex):
        assert "fully synthetic data" in form
        assert "the population that the confidential rows were drawn from" in form
    assert "race[T.Black]" in text
    assert html.count("<tr>") == 1 + 4
    assert latex.count(r"\\") == 1 + 4
    assert r"60 synthetic datasets of 500 rows" in latex
    assert pooled._repr_html_() == html


def test_special_characters_survive_html_and_latex():
    odd = pool(estimates(terms=("a<b", "50%_&x", "é", "y")), rows=5, original_rows=5)

    assert "a&lt;b" in odd.summary().as_html()
    assert r"50\%\_\&x" in odd.summary().as_latex()


def test_fallbacks_and_cautions_are_marked_and_explained():
    mixed = pool(estimates(datasets=5, spread=0.11, seed=3), rows=500, original_rows=500)

    assert mixed.fallbacks or mixed.cautions
    text = str(mixed.summary())
    for term, sentence in {**mixed.cautions, **mixed.fallbacks}.items():
        row = next(line for line in text.splitlines() if line.startswith(term))
        assert row.rstrip()[-1] in "‡!"
        assert sentence in text


def test_alpha_out_of_range_is_refused(pooled):
    with pytest.raises(AnalysisError, match="alpha is 95"):
        pooled.conf_int(95)


def test_a_rule_that_cannot_pool_names_the_term():
    flat = estimates()
    flat.values[:, 1] = 2.0
    with pytest.raises(AnalysisError, match="Term 'x'"):
        pool(flat, rule=FewDatasets())


class TestPicture:
    def test_every_term_has_its_single_intervals_the_pooled_one_and_the_reference(self, pooled, tmp_path):
        figure = pooled.plot(reference={"x": 1.1})

        panels = [axes for axes in figure.axes if axes.axison]
        assert [axes.get_title(loc="left") for axes in panels] == list(TERMS)
        single, whole = panels[1].collections[:2]
        drawn = np.array([line[:, 0] for line in single.get_segments()])
        half = stats.norm.ppf(0.975) * 0.1
        expected = pooled.estimates.values[[0, -1], 1]  # the first and the last of those drawn
        np.testing.assert_allclose(drawn[[0, -1]], np.stack([expected - half, expected + half], axis=1))
        assert len(drawn) == 50
        np.testing.assert_allclose(whole.get_segments()[0][:, 0], pooled.conf_int().loc["x"])
        assert [line.get_label() for line in panels[1].lines].count("reference") == 1
        assert "reference" not in [line.get_label() for line in panels[0].lines]
        figure.savefig(tmp_path / "p.svg")
        assert (tmp_path / "p.svg").stat().st_size > 1000

    def test_a_fitted_result_is_a_reference_with_intervals(self):
        frames = [pd.DataFrame({"x": np.arange(50.0), "y": np.random.default_rng(i).normal(size=50)}) for i in range(8)]
        pooled = analyze(frames, ols("y ~ x"), original_rows=50)

        figure = pooled.plot(["x"], reference=pooled)

        assert len(figure.axes) == 1
        assert len(figure.axes[0].patches) == 1  # the reference's own interval

    def test_an_interval_without_ends_is_drawn_with_arrows(self):
        values = np.array([[1.0], [2.0], [3.0], [6.0]])
        covariances = np.full((4, 1, 1), 35 / 6 - 1e-9)  # next to (1 + 1/m) between, so that nothing is known
        made = Estimates(terms=("x",), values=values, covariances=covariances, used=np.ones((4, 1), bool))
        panel = pool(made).plot().axes[0]

        assert np.isfinite(panel.collections[1].get_segments()[0]).all()
        assert {"<", ">"} <= {line.get_marker() for line in panel.lines}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"terms": ["z"]}, "no term 'z'"),
            ({"terms": []}, "No terms"),
            ({"reference": {"z": 1.0}}, "none of the terms"),
            ({"reference": 3.0}, "is a float"),
        ],
    )
    def test_what_cannot_be_drawn_is_said(self, pooled, arguments, message):
        with pytest.raises(AnalysisError, match=message):
            pooled.plot(**arguments)
