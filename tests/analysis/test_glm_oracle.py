"""Fits on distinct rows equal statsmodels' fits on the full rows, for every family and in the corners."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.genmod import families as sm_families

from noisewise.analysis.glm import glm

links = sm_families.links
LEVELS = ["a", "b", "c"]
FAMILIES = {
    "binomial": sm_families.Binomial(),
    "probit": sm_families.Binomial(links.Probit()),
    "cloglog": sm_families.Binomial(links.CLogLog()),
    "cauchy": sm_families.Binomial(links.Cauchy()),
    "gaussian": sm_families.Gaussian(),
    "gaussian-log": sm_families.Gaussian(links.Log()),
    "poisson": sm_families.Poisson(),
    "poisson-sqrt": sm_families.Poisson(links.Sqrt()),
    "gamma": sm_families.Gamma(links.Log()),
    "gamma-inverse": sm_families.Gamma(links.InversePower()),
    "inverse-gaussian": sm_families.InverseGaussian(links.Log()),
    "negative-binomial": sm_families.NegativeBinomial(alpha=0.7),
    "tweedie": sm_families.Tweedie(links.Log(), var_power=1.5),
}


def frames(outcome, count=3, rows=400, levels=LEVELS):
    made = []
    for number in range(count):
        random = np.random.default_rng(number)
        group = pd.Categorical(random.choice(levels, rows), categories=LEVELS)
        x = random.integers(0, 5, rows).astype(float)
        line = 0.3 + 0.2 * x + 0.4 * (group == "b")
        made.append(pd.DataFrame({"group": group, "x": x, "y": outcome(random, line)}))
    return made


def outcome_for(family):
    kind = type(family).__name__
    return {
        "Binomial": lambda random, line: (random.random(len(line)) < 1 / (1 + np.exp(-(line - 1)))).astype(float),
        "Gaussian": lambda random, line: np.round(np.exp(line) + random.normal(size=len(line)), 1),
        "Poisson": lambda random, line: random.poisson(np.exp(line)).astype(float),
        "NegativeBinomial": lambda random, line: random.poisson(np.exp(line)).astype(float),
        "Tweedie": lambda random, line: random.poisson(np.exp(line)).astype(float),
        "Gamma": lambda random, line: np.round(random.gamma(3, np.exp(line) / 3), 1) + 0.1,
        "InverseGaussian": lambda random, line: np.round(random.wald(np.exp(line), 5), 1) + 0.1,
    }[kind]


def by_rows(frame, family, columns=("b", "c"), weights=None):
    """The straightforward fit; `columns` are the dummy columns to keep."""
    matrix = np.column_stack(
        [np.ones(len(frame)), *((frame["group"] == level).astype(float) for level in columns), frame["x"]]
    )
    model = sm.GLM(frame["y"].to_numpy(), matrix, family=family, var_weights=weights)
    # Judged by the coefficients: the deviance is flat at its optimum and stands still while they still move.
    return model.fit(maxiter=300, tol=1e-13, tol_criterion="params")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.filterwarnings("ignore")  # statsmodels' remarks on links and domains
def test_every_family_equals_statsmodels_on_full_rows(name):
    family = FAMILIES[name]
    datasets = frames(outcome_for(family))

    estimates = glm("y ~ group + x", family).fit(datasets)

    assert estimates.terms == ("Intercept", "group[T.b]", "group[T.c]", "x")
    for frame, values, covariance in zip(datasets, estimates.values, estimates.covariances, strict=True):
        reference = by_rows(frame, family)
        np.testing.assert_allclose(values, reference.params, rtol=1e-8, atol=1e-9)
        # Entries near zero are differences of large ones: compare in units of the standard errors.
        unit = np.outer(reference.bse, reference.bse)
        np.testing.assert_allclose(covariance / unit, reference.cov_params() / unit, atol=1e-8)


def test_a_level_missing_in_one_dataset_is_left_out_there_and_the_rest_equals_the_smaller_fit():
    family = FAMILIES["binomial"]
    datasets = [*frames(outcome_for(family)), *frames(outcome_for(family), count=1, levels=["a", "b"])]

    estimates = glm("y ~ group + x", family).fit(datasets)

    assert estimates.used.tolist() == [[True] * 4] * 3 + [[True, True, False, True]]
    smaller = by_rows(datasets[3], family, columns=("b",))
    kept = [0, 1, 3]
    np.testing.assert_allclose(estimates.values[3][kept], smaller.params, rtol=1e-8)
    np.testing.assert_allclose(estimates.covariances[3][np.ix_(kept, kept)], smaller.cov_params(), rtol=1e-8)
    assert list(estimates.left_out.values()) == [1]


def test_separation_is_seen_and_the_other_coefficients_equal_those_without_the_separated_rows():
    family = FAMILIES["binomial"]
    datasets = frames(outcome_for(family))
    datasets[1].loc[datasets[1]["group"] == "c", "y"] = 1.0

    estimates = glm("y ~ group + x", family).fit(datasets)

    assert estimates.used.tolist() == [[True] * 4, [True, True, False, True], [True] * 4]
    assert any("separation" in reason for reason in estimates.left_out)
    rest = datasets[1][datasets[1]["group"] != "c"]
    reference = by_rows(rest, family, columns=("b",))
    np.testing.assert_allclose(estimates.values[1][[0, 1, 3]], reference.params, rtol=1e-6)


def test_complete_separation_leaves_out_every_coefficient_of_that_dataset():
    datasets = frames(outcome_for(FAMILIES["binomial"]))
    datasets[0]["y"] = (datasets[0]["x"] > 2).astype(float)

    estimates = glm("y ~ x", "binomial").fit(datasets)

    assert estimates.used.tolist() == [[False, False], [True, True], [True, True]]


def test_collinear_columns_are_named_and_the_others_stand():
    datasets = frames(outcome_for(FAMILIES["gaussian"]))
    for frame in datasets:
        frame["twice"] = 2 * frame["x"]

    estimates = glm("y ~ group + x + twice").fit(datasets)

    assert estimates.used.tolist() == [[True, True, True, False, False]] * 3
    reference = by_rows(datasets[0], FAMILIES["gaussian"])
    np.testing.assert_allclose(estimates.values[0][:3], reference.params[:3], rtol=1e-8)


def test_an_outcome_without_variation_is_left_out_not_reported():
    datasets = frames(outcome_for(FAMILIES["binomial"]))
    datasets[2]["y"] = 0.0

    estimates = glm("y ~ x", "binomial").fit(datasets)

    assert not estimates.used[2].any()
