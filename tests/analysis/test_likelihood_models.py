"""Multinomial, ordered and Cox models on distinct rows equal statsmodels on the full rows."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.miscmodels.ordinal_model import OrderedModel

from noisewise.analysis.choice_models import multinomial_logit, ordered_logit
from noisewise.analysis.cox import cox
from noisewise.errors import AnalysisError

LEVELS = ["low", "middle", "high"]


def frames(count=2, rows=500):
    made = []
    for number in range(count):
        random = np.random.default_rng(number)
        group = pd.Categorical(random.choice(["a", "b"], rows), categories=["a", "b"])
        x = random.integers(0, 4, rows).astype(float)
        latent = 0.5 * x - 0.8 * (group == "b") + random.logistic(size=rows)
        y = pd.cut(latent, [-np.inf, 0, 1.5, np.inf], labels=LEVELS)
        time = np.ceil(random.exponential(10 * np.exp(-0.3 * x)))
        made.append(pd.DataFrame({"y": y, "group": group, "x": x, "time": time, "died": random.random(rows) < 0.7}))
    return made


def matrix(frame, intercept):
    columns = [(frame["group"] == "b").astype(float), frame["x"]]
    return np.column_stack([np.ones(len(frame)), *columns] if intercept else columns)


def test_multinomial_logit_equals_statsmodels():
    datasets = frames()
    estimates = multinomial_logit("y ~ group + x").fit(datasets)

    assert estimates.terms[0] == "y=middle: Intercept"
    assert estimates.variables["y=high: group[T.b]"] == ("y", "group")
    for number, frame in enumerate(datasets):
        reference = sm.MNLogit(frame["y"].cat.codes, matrix(frame, True)).fit(method="newton", tol=1e-14, disp=False)
        np.testing.assert_allclose(estimates.values[number], np.ravel(reference.params, order="F"), rtol=1e-8)
        np.testing.assert_allclose(estimates.covariances[number], reference.cov_params(), atol=1e-9)


@pytest.mark.filterwarnings("ignore")  # statsmodels' optimisers warn near machine precision
def test_ordered_logit_equals_statsmodels():
    datasets = frames()
    estimates = ordered_logit("y ~ group + x").fit(datasets)

    assert estimates.terms == ("group[T.b]", "x", "low|middle", "middle|high")
    for number, frame in enumerate(datasets):
        model = OrderedModel(frame["y"], matrix(frame, False), distr="logit")
        reference = model.fit(method="bfgs", gtol=1e-10, maxiter=500, disp=False)
        cuts = model.transform_threshold_params(reference.params)[1:-1]
        # bfgs stops at gradients of 1e-6 or so; the estimates agree to that over the information
        np.testing.assert_allclose(estimates.values[number], [*reference.params[:2], *cuts], rtol=1e-4)
        np.testing.assert_allclose(estimates.variances[number, :2] ** 0.5, reference.bse[:2], rtol=1e-3)
        # at our estimate the log-likelihood is at least as high
        low, high = estimates.values[number, 2:]
        own = np.array([*estimates.values[number, :2], low, np.log(high - low)])
        assert model.loglike(own) >= reference.llf - 1e-9


def test_ordered_logit_with_two_levels_is_a_logistic_regression():
    datasets = frames()
    for frame in datasets:
        frame["y"] = pd.Categorical(np.where(frame["y"] == "high", "high", "low"), categories=["low", "high"])
    estimates = ordered_logit("y ~ group + x").fit(datasets)

    reference = sm.Logit(datasets[0]["y"].cat.codes, matrix(datasets[0], True)).fit(disp=False, tol=1e-14)
    np.testing.assert_allclose(estimates.values[0], [*reference.params.iloc[1:], -reference.params.iloc[0]], rtol=1e-8)
    np.testing.assert_allclose(estimates.variances[0, :2] ** 0.5, reference.bse.iloc[1:], rtol=1e-8)


def test_cox_equals_statsmodels():
    datasets = frames()
    estimates = cox("time ~ group + x", event="died").fit(datasets)

    for number, frame in enumerate(datasets):
        model = PHReg(frame["time"], matrix(frame, False), status=frame["died"].astype(int), ties="breslow")
        reference = model.fit(tol=1e-14)
        np.testing.assert_allclose(estimates.values[number], reference.params, rtol=1e-7)
        np.testing.assert_allclose(estimates.covariances[number], reference.cov_params(), rtol=1e-7)


def test_an_outcome_level_without_rows_leaves_the_dataset_out():
    datasets = frames(3)
    datasets[1]["y"] = datasets[1]["y"].where(datasets[1]["y"] != "middle", "low")
    for model in (ordered_logit("y ~ x"), multinomial_logit("y ~ x")):
        estimates = model.fit(datasets)

        assert estimates.used.all(axis=1).tolist() == [True, False, True]
        assert list(estimates.left_out.values()) == [1]


def test_a_categorical_time_is_refused():
    with pytest.raises(AnalysisError, match="is a category"):
        cox("y ~ x").fit(frames())


def test_an_event_with_three_levels_is_refused():
    with pytest.raises(AnalysisError, match="3 levels"):
        cox("time ~ x", event="y").fit(frames())
