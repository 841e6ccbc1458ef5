"""Any function of a dataset, any fitted result, any learner: read rightly, and nothing silently dropped."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

from noisewise.analysis.analyze import analyze
from noisewise.analysis.custom import Bootstrap, Custom
from noisewise.analysis.glm import ols
from noisewise.analysis.learners import Learner
from noisewise.errors import AnalysisError


def frames(count=5, rows=200):
    made = []
    for number in range(count):
        random = np.random.default_rng(number)
        x = random.integers(0, 5, rows).astype(float)
        group = pd.Categorical(random.choice(["a", "b"], rows), categories=["a", "b"])
        made.append(pd.DataFrame({"x": x, "group": group, "y": 1 + 0.5 * x + random.normal(size=rows)}))
    return made


def test_a_fitted_statsmodels_result_is_read_with_its_names():
    datasets = frames()
    estimates = Custom(lambda frame: smf.ols("y ~ x + group", frame).fit(), formula="y ~ x + group").fit(datasets)
    own = ols("y ~ x + group").fit(datasets)

    order = [estimates.terms.index(term) for term in own.terms]
    np.testing.assert_allclose(estimates.values[:, order], own.values, rtol=1e-9)
    np.testing.assert_allclose(estimates.covariances[:, order][:, :, order], own.covariances, atol=1e-12)


def test_a_fitted_multinomial_result_has_a_name_for_every_coefficient():
    datasets = frames()
    for frame in datasets:
        frame["level"] = pd.cut(frame["y"], [-9, 1, 2, 9], labels=False)
    estimates = Custom(lambda frame: smf.mnlogit("level ~ x", frame).fit(disp=False)).fit(datasets)

    assert len(set(estimates.terms)) == 4
    reference = smf.mnlogit("level ~ x", datasets[0]).fit(disp=False)
    np.testing.assert_allclose(estimates.variances[0] ** 0.5, np.ravel(reference.bse, order="F"))


def test_estimate_and_variance():
    estimates = Custom(lambda frame: (frame["y"].mean(), frame["y"].var() / len(frame)), terms=("mean",)).fit(frames())

    assert estimates.terms == ("mean",)
    assert estimates.variances[2, 0] == pytest.approx(frames()[2]["y"].var() / 200)


def test_vector_and_covariance_with_and_without_names():
    named = Custom(lambda frame: (frame[["x", "y"]].mean(), frame[["x", "y"]].cov() / len(frame))).fit(frames())
    plain = Custom(lambda frame: (np.zeros(2), np.eye(2))).fit(frames())

    assert named.terms == ("x", "y")
    assert named.covariances[0, 0, 1] == pytest.approx(frames()[0][["x", "y"]].cov().iloc[0, 1] / 200)
    assert plain.terms == ("estimate 0", "estimate 1")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((np.zeros(2), np.ones(2)), r"np\.diag"),
        ((np.zeros(2), np.eye(3)), r"shape \(3, 3\)"),
        (3.0, "returned a float"),
        (None, "returned a NoneType"),
    ],
)
def test_what_cannot_be_read_is_said(result, message):
    with pytest.raises(AnalysisError, match=message):
        Custom(lambda frame: result).fit(frames())


def failing_in(numbers, datasets, error):
    bad = [datasets[number]["y"].sum() for number in numbers]

    def function(frame):
        if frame["y"].sum() in bad:
            raise error
        return frame["y"].mean(), frame["y"].var() / len(frame)

    return function


def test_a_model_that_fails_in_3_of_100_datasets_is_counted_and_the_rest_is_pooled():
    datasets = frames(100)
    function = failing_in((4, 50, 99), datasets, np.linalg.LinAlgError("Singular matrix"))

    pooled = analyze(datasets, Custom(function), original_rows=200)

    assert pooled.left_out == {"the analysis failed (LinAlgError: Singular matrix)": 3}
    assert pooled.pooled[0].datasets == 97
    assert "Left out in 3 of 100 datasets" in str(pooled.summary())


def test_a_model_that_fails_too_often_is_refused():
    datasets = frames(20)
    function = failing_in((0, 1, 2), datasets, ValueError("no"))

    with pytest.raises(AnalysisError, match="17 of 20"):
        analyze(datasets, Custom(function), original_rows=200)
    assert analyze(datasets, Custom(function), original_rows=200, max_left_out=0.2).pooled[0].datasets == 17


def test_a_mistake_in_the_function_stops_at_once():
    with pytest.raises(AnalysisError, match="dataset 0 with KeyError"):
        Custom(lambda frame: (frame["nothing"].mean(), 1.0)).fit(frames())


def test_nan_from_the_function_is_left_out_and_counted():
    datasets = frames(20)
    first = datasets[0]["y"].sum()

    def function(frame):
        return (np.nan if frame["y"].sum() == first else 1.0 + frame["y"].mean()), 0.01

    pooled = analyze(datasets, Custom(function), original_rows=200)

    assert pooled.pooled[0].datasets == 19
    assert list(pooled.left_out.values()) == [1]
    assert "not a finite number" in next(iter(pooled.left_out))


def test_nan_everywhere_is_refused():
    with pytest.raises(AnalysisError, match="0 of 5 datasets"):
        analyze(frames(), Custom(lambda frame: (np.nan, 1.0)), original_rows=200)


def test_a_term_that_some_results_lack_is_left_out_there():
    datasets = frames(20)
    datasets[3]["group"] = "a"
    model = Custom(lambda frame: smf.ols("y ~ group", frame.astype({"group": str})).fit())

    pooled = analyze(datasets, model, original_rows=200)

    assert pooled.pooled[pooled.terms.index("group[T.b]")].datasets == 19
    assert pooled.left_out == {"the result has no term 'group[T.b]'": 1}


def test_the_frame_that_came_in_goes_to_the_function_and_arrow_becomes_what_is_asked():
    seen = []

    def function(frame):
        seen.append(type(frame))
        return 1.0, 1.0

    Custom(function).fit([pl.DataFrame({"y": [1]})])
    Custom(function).fit([pa.table({"y": [1]})])
    Custom(function, convert=pl.from_arrow).fit([pa.table({"y": [1]})])

    assert seen == [pl.DataFrame, pd.DataFrame, pl.DataFrame]


def test_bootstrap_variance_of_a_mean_is_near_its_formula():
    estimates = Bootstrap(lambda frame: frame["y"].mean(), resamples=2000, terms=("mean",)).fit(frames(2))

    for frame, variance in zip(frames(2), estimates.variances[:, 0], strict=True):
        # relative standard error of a variance from 2,000 normal values: sqrt(2 / 2000) = 3.2 %; four of them
        assert variance == pytest.approx(frame["y"].var(ddof=0) / len(frame), rel=0.13)


def test_bootstrap_depends_on_the_seed_and_the_number_of_the_dataset_only():
    function = Bootstrap(lambda frame: frame["y"].mean(), seed=3)

    few, many = function.fit(frames(2)), function.fit(frames(4))

    assert (few.covariances == many.covariances[:2]).all()
    assert (Bootstrap(lambda frame: frame["y"].mean(), seed=4).fit(frames(2)).covariances != few.covariances).all()


class LeastSquares:
    """Looks like scikit-learn's LinearRegression."""

    def fit(self, matrix, outcome):
        full = np.column_stack([np.ones(len(matrix)), matrix])
        self.intercept_, *slopes = np.linalg.lstsq(full, outcome, rcond=None)[0]
        self.coef_ = np.array(slopes)
        return self


def test_a_learner_with_bootstrap_agrees_with_least_squares():
    datasets, model = frames(3), LeastSquares()
    estimates = Learner(model, "y ~ x + group", resamples=500).fit(datasets)
    own = ols("y ~ x + group").fit(datasets)

    order = [own.terms.index(term) for term in estimates.terms]
    np.testing.assert_allclose(estimates.values, own.values[:, order], rtol=1e-9)
    # relative standard error of a standard deviation from 500 resamples: 3.2 %; four of them, and 4 % for the formula
    np.testing.assert_allclose(estimates.variances**0.5, own.variances[:, order] ** 0.5, rtol=0.17)
    assert estimates.variables["x"] == ("y", "x")
    assert not hasattr(model, "coef_")


def test_a_learner_without_coefficients_needs_to_be_told_what_to_read():
    class Mean:
        def fit(self, matrix, outcome):
            self.mean_ = outcome.mean()
            return self

    with pytest.raises(AnalysisError, match="has no coef_"):
        Learner(Mean(), "y ~ x").fit(frames())
    estimates = Learner(Mean(), "y ~ x", read=lambda fitted: fitted.mean_).fit(frames())
    assert estimates.values[0, 0] == pytest.approx(frames()[0]["y"].mean())


def test_a_learner_with_several_rows_of_coefficients_is_refused():
    class Several(LeastSquares):
        def fit(self, matrix, outcome):
            super().fit(matrix, outcome)
            self.coef_ = np.stack([self.coef_, self.coef_])
            return self

    with pytest.raises(AnalysisError, match="2 rows of coefficients"):
        Learner(Several(), "y ~ x").fit(frames())


def test_cov_params_may_be_an_attribute():
    fitted = SimpleNamespace(params=np.array([1.0, 2.0]), cov_params=np.eye(2))

    assert Custom(lambda frame: fitted).fit(frames()).terms == ("estimate 0", "estimate 1")


def test_a_learner_counts_rows_set_aside_and_says_how_the_outcome_was_coded():
    datasets = frames()
    for frame in datasets:
        frame.loc[:9, "x"] = np.nan
    estimates = Learner(LeastSquares(), "group ~ x", resamples=3).fit(datasets)

    assert estimates.notes == (
        "Outcome as numbers: 0 = 'a', 1 = 'b'.",
        "Rows set aside because a variable is missing: 10 per dataset.",
    )
