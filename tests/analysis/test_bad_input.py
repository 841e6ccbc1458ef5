"""Wrong input is told by name with the next step; nothing is silently dropped."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm

from noisewise.analysis import (
    Custom,
    FullySynthetic,
    analyze,
    contingency,
    glm,
    logit,
    means,
    multinomial_logit,
    ols,
    ordered_logit,
    poisson,
    pool,
    proportions,
)
from noisewise.analysis import rows as weighted
from noisewise.errors import AnalysisError
from noisewise.synthesis import synthesize
from released import posterior


def frames(count=6, rows=200):
    made = []
    for number in range(count):
        random = np.random.default_rng(number)
        x = random.integers(0, 5, rows).astype(float)
        three = pd.Categorical(random.choice(["a", "b", "c"], rows), categories=["a", "b", "c"])
        y = 1 + (0.5 + random.normal(0, 0.3)) * x + random.normal(size=rows)
        made.append(pd.DataFrame({"x": x, "three": three, "y": y, "w": random.integers(1, 4, rows).astype(float)}))
    return made


DATASETS = frames()
unchecked = inspect.unwrap  # without the tests' own check of types, as a user calls it


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ([], "There are no datasets"),
        (DATASETS[:1], "There is 1 dataset. Pooling needs at least 2"),
        (DATASETS[0], "datasets are a DataFrame"),
        ("release", "datasets are a str"),
        (iter(DATASETS), r"Give read_release\(place\)\.datasets\(\)"),
        ([1, 2], "A dataset is a int, not a data frame"),
    ],
)
def test_what_is_no_list_of_datasets(datasets, message):
    with pytest.raises(AnalysisError, match=message):
        unchecked(analyze)(datasets, ols("y ~ x"), original_rows=200)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        ("y ~ x", r"is a str. Give an estimator, such as glm\("),
        (lambda frame: (1.0, 1.0), r"Custom\(function\)"),
        (ols("y ~ nothing"), "Column 'nothing' is not in dataset 0"),
        (ols("y ~ xx"), "Did you mean 'x'"),
        (ols("x + three"), "needs one outcome"),
        (ols("y + x ~ three"), "needs one outcome"),
        (ols(""), "names no column"),
        (contingency(), "names no column"),
        (ols("y ~ | x"), "Cannot read the formula"),
        (ols("y ~ np.log(x)"), r"term 'np.log\(x\)' is not a finite number"),
        (ols("np.log(x) ~ three"), r"outcome 'np.log\(x\)' is not a finite number"),
        (logit("three ~ x"), r"'three' has 3 levels \(a, b, c\); the Binomial family needs two.*multinomial_logit"),
        (ols("three ~ x"), "the Gaussian family needs a number"),
        (logit("y ~ x"), "needs 0 and 1"),
        (poisson("y ~ x"), "negative values"),
        (glm("x ~ three", "gamma"), "0 or less"),
        (glm("y ~ x", "gausian"), "Did you mean 'gaussian'"),
        (ols("y ~ x", weights="three"), "weights 'three' are not numbers"),
        (ols("y ~ x", weights="y"), "must be finite and not negative"),
        (ols("y ~ x", weights="ww"), "Did you mean 'w'"),
        (multinomial_logit("three + x ~ y"), "needs one outcome"),
        (ordered_logit("I(x > 2) ~ y"), "one column as it is"),
        (means("three"), "is a category, not a number"),
        (means("z"), "Column 'z' is not in dataset 0"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_analyses_that_make_no_sense(estimator, message):
    with pytest.raises(AnalysisError, match=message):
        unchecked(analyze)(DATASETS, estimator, original_rows=200)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_left_out": 3}, "max_left_out is 3"),
        ({"original_rows": 0}, "original_rows is 0. Give the number of rows of the confidential table"),
        ({"original_rows": -5}, "original_rows is -5"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(AnalysisError, match=message):
        analyze(DATASETS, ols("y ~ x"), **settings)


@pytest.mark.parametrize("rule", ["rubin", FullySynthetic])
def test_a_rule_that_is_no_rule(rule):
    with pytest.raises(AnalysisError, match="Give an object, such as rule=FullySynthetic"):
        unchecked(pool)(ols("y ~ x").fit(DATASETS), rule=rule, rows=200, original_rows=200)


def test_identical_datasets_are_pooled_with_a_caution_for_every_term():
    result = analyze([DATASETS[0]] * 5, ols("y ~ x"), original_rows=200)

    assert set(result.cautions) == set(result.fallbacks) == {"Intercept", "x"}
    assert "either they are copies, or the analysis ignores the data" in str(result.summary())


def test_a_fallback_without_the_number_of_rows_names_what_to_give():
    with pytest.raises(AnalysisError, match=r"Term 'Intercept': .* Give original_rows=, or pool with FewDatasets"):
        analyze([DATASETS[0]] * 5, ols("y ~ x"))
    estimates = ols("y ~ x").fit([DATASETS[0]] * 5)
    with pytest.raises(AnalysisError, match="Give rows= and original_rows="):
        pool(estimates)


def test_perfect_separation_everywhere_is_refused_by_name():
    datasets = [frame.assign(y=(frame["x"] > 2).astype(float)) for frame in DATASETS]

    with pytest.raises(AnalysisError, match=r"0 of 6 datasets.*separation"):
        analyze(datasets, logit("y ~ x"), original_rows=200)


def test_collinear_columns_everywhere_are_refused_by_name():
    with pytest.raises(
        AnalysisError, match=r"'x' could be estimated in 0 of 6.*collinear.*two columns that say the same"
    ):
        analyze(DATASETS, ols("y ~ x + I(2 * x)"), original_rows=200)


def test_weights_are_those_of_statsmodels():
    estimates = ols("y ~ x", weights="w").fit(DATASETS)

    for frame, values, covariance in zip(DATASETS, estimates.values, estimates.covariances, strict=True):
        model = sm.GLM(frame["y"], sm.add_constant(frame["x"]), var_weights=frame["w"])
        reference = model.fit(tol=1e-13, tol_criterion="params")
        np.testing.assert_allclose(values, reference.params, rtol=1e-8)
        np.testing.assert_allclose(covariance, reference.cov_params(), rtol=1e-8)
    assert "Rows weighted by 'w'" in str(analyze(DATASETS, ols("y ~ x", weights="w"), original_rows=200).summary())


def test_rows_with_missing_values_are_set_aside_and_counted():
    datasets = [frame.assign(x=frame["x"].where(frame.index >= number)) for number, frame in enumerate(DATASETS)]

    result = analyze(datasets, ols("y ~ x"), original_rows=200)

    assert "Rows set aside because a variable is missing: 0 to 5 per dataset." in result.notes
    kept = datasets[5].dropna()
    np.testing.assert_allclose(
        result.estimates.values[5], sm.OLS(kept["y"], sm.add_constant(kept["x"])).fit().params, rtol=1e-8
    )


def test_a_column_without_any_value_is_refused():
    with pytest.raises(AnalysisError, match="No dataset has a row without missing values in 'y', 'x'"):
        analyze([frame.assign(x=np.nan) for frame in DATASETS], ols("y ~ x"), original_rows=200)


@pytest.mark.parametrize("side", ["y ~ scale(x)", "scale(y) ~ x", "y ~ I(x - x.mean())", "y ~ I(x > np.mean(x))"])
def test_terms_that_look_at_the_whole_column_are_computed_on_full_rows(side):
    repeated = [pd.concat([frame, *[frame.query("x == 4")] * 3], ignore_index=True) for frame in DATASETS]
    estimates = ols(side).fit(repeated)

    x, y = repeated[2]["x"], repeated[2]["y"]
    if "scale(x)" in side:
        x = (x - x.mean()) / x.std()
    elif "scale(y)" in side:
        y = (y - y.mean()) / y.std()
    elif ">" in side:
        x = (x > x.mean()).astype(float)
    else:
        x = x - x.mean()
    np.testing.assert_allclose(estimates.values[2], sm.OLS(y, sm.add_constant(x)).fit().params, rtol=1e-9, atol=1e-12)
    assert any("computed within each dataset" in note for note in estimates.notes)


def test_levels_that_only_some_datasets_give_are_refused():
    datasets = [frame.assign(x=1.0) if number == 3 else frame for number, frame in enumerate(DATASETS)]

    with pytest.raises(AnalysisError, match=r"the term .* in some datasets only"):
        ols("y ~ C(I(x - x.mean() > 1))").fit(datasets)


def test_text_numbers_booleans_and_other_frames_are_taken_alike():
    plain = ols("y ~ three + x").fit(DATASETS)
    as_text = ols("y ~ three + x").fit([frame.astype({"three": str}) for frame in DATASETS])
    as_polars = ols("y ~ three + x").fit([pl.from_pandas(frame) for frame in DATASETS])

    np.testing.assert_allclose(as_text.values, plain.values, rtol=1e-10)
    np.testing.assert_allclose(as_polars.values, plain.values, rtol=1e-10)


def test_a_date_is_refused_with_advice():
    with pytest.raises(AnalysisError, match="Convert it to numbers, booleans, text or categories"):
        ols("y ~ when").fit([frame.assign(when=pd.Timestamp("2026-01-01")) for frame in DATASETS])


def test_many_distinct_rows_give_the_same_results_from_tables_of_their_own(monkeypatch):
    shared = ols("y ~ three + x").fit(DATASETS)
    monkeypatch.setattr(weighted, "MAX_SHARED_CELLS", 10)
    own = ols("y ~ three + x").fit(DATASETS)

    np.testing.assert_allclose(own.values, shared.values, rtol=1e-10)
    np.testing.assert_allclose(own.covariances, shared.covariances, rtol=1e-9)
    assert [len(part.counts) for part in weighted.weighted_rows(DATASETS, ("y", "x"))] == [1] * 6


def test_shares_without_variance_are_named_instead_of_pooled():
    datasets = [frame.assign(three=frame["three"].replace("c", "b")) for frame in DATASETS]
    datasets = [frame.assign(three=pd.Categorical(frame["three"], categories=["a", "b", "c"])) for frame in datasets]

    result = analyze(datasets, proportions("three"), original_rows=200)

    assert result.terms == ("three=a", "three=b")
    assert "Not pooled, because the same in every dataset and without variance: three=c = 0." in result.notes
    with pytest.raises(AnalysisError, match="three=a is 1 in every dataset"):
        analyze([frame.assign(three="a") for frame in DATASETS], proportions("three"), original_rows=200)


def test_a_contingency_table_has_the_multinomial_covariance():
    datasets = [frame.assign(big=frame["x"] > 2) for frame in DATASETS]
    estimates = contingency("three", "big").fit(datasets)

    share = pd.crosstab(datasets[1]["three"], datasets[1]["big"]).stack() / 200
    assert estimates.terms[:2] == ("three=a, big=False", "three=a, big=True")
    np.testing.assert_allclose(estimates.values[1], share)
    np.testing.assert_allclose(estimates.covariances[1], (np.diag(share) - np.outer(share, share)) / 200, atol=1e-16)


def test_slices_of_a_release_keep_what_is_known_of_it():
    datasets = synthesize(posterior(), 12, seed=1)
    some = datasets[2:8]

    assert (len(some), some.rows, some.original_rows, some.marginals) == (6, 300, 300, datasets.marginals)
    assert some[0].equals(datasets[2])
    assert some[-1].equals(datasets[7])
    assert some[::2][1].equals(datasets[4])
    assert some.part(1, ["race"]).equals(datasets[3].select(["race"]))
    assert analyze(some, logit("income ~ owner")).support.supported


def test_a_joint_test_says_how_many_datasets_entered():
    datasets = frames(20)
    datasets[3]["three"] = pd.Categorical(["a", "b"] * 100, categories=["a", "b", "c"])
    result = analyze(datasets, ols("y ~ three + x"), original_rows=200)

    assert "Datasets that entered: 19 of 20" in str(result.wald_test("three"))
    assert "Datasets that entered" not in str(result.wald_test("x"))


def test_an_analysis_that_cannot_be_read_says_so_once():
    with pytest.raises(AnalysisError, match=r"on all 6 datasets: The analysis returned a NoneType\. Return"):
        analyze(DATASETS, Custom(lambda frame: None), original_rows=200)
