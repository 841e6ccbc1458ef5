"""Means, shares, correlations, quantiles and the likelihood-ratio tests against what is written out by hand."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy import stats

from noisewise.analysis.analyze import analyze
from noisewise.analysis.descriptive import correlations, means, proportions
from noisewise.analysis.glm import glm, logit, ols
from noisewise.analysis.likelihood_ratio import independence_test, likelihood_ratio_test
from noisewise.analysis.quantiles import quantiles
from noisewise.analysis.remedies import RidgeBootstrap
from noisewise.errors import AnalysisError


def frames(count=4, rows=300, effect=0.5):
    made = []
    for number in range(count):
        random = np.random.default_rng(number)
        group = pd.Categorical(random.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]), categories=["a", "b", "c"])
        x = random.integers(0, 6, rows).astype(float)
        chance = 1 / (1 + np.exp(-(effect * (x - 3) + effect * (group == "b"))))
        won = pd.Categorical(np.where(random.random(rows) < chance, "yes", "no"), categories=["no", "yes"])
        made.append(
            pd.DataFrame(
                {
                    "x": x,
                    "group": group,
                    "won": won,
                    "z": (x + effect * (group == "b") + random.normal(size=rows)).round(),
                }
            )
        )
    return made


def test_means_and_their_variances():
    estimates = means("x", by="group").fit(frames())

    assert estimates.terms == ("x[group=a]", "x[group=b]", "x[group=c]")
    groups = frames()[1].groupby("group", observed=False)["x"]
    np.testing.assert_allclose(estimates.values[1], groups.mean())
    np.testing.assert_allclose(estimates.covariances[1], np.diag(groups.var() / groups.size()), atol=1e-15)


def test_the_mean_of_all_rows():
    estimates = means("x").fit(frames())

    assert estimates.terms == ("x",)
    assert estimates.variances[0, 0] == pytest.approx(frames()[0]["x"].var() / 300)


def test_shares_have_the_multinomial_covariance():
    estimates = proportions("group", by="won").fit(frames())

    part = frames()[0].query("won == 'yes'")["group"].value_counts(normalize=True, sort=False)
    at = [estimates.terms.index(f"group={level}[won=yes]") for level in "abc"]
    np.testing.assert_allclose(estimates.values[0, at], part)
    expected = (np.diag(part) - np.outer(part, part)) / (frames()[0]["won"] == "yes").sum()
    np.testing.assert_allclose(estimates.covariances[0][np.ix_(at, at)], expected, atol=1e-15)


def test_a_group_without_rows_is_left_out_and_counted():
    datasets = frames()
    datasets[2]["group"] = pd.Categorical(datasets[2]["group"].replace({"c": "a"}), categories=["a", "b", "c"])

    estimates = means("x", by="group").fit(datasets)

    assert estimates.used[2].tolist() == [True, True, False]
    assert list(estimates.left_out.values()) == [1]


def test_the_difference_of_two_means_is_that_of_the_two_sample_comparison():
    pooled = analyze(frames(), means("x", by="group"), original_rows=300).difference("x[group=a]", "x[group=b]")

    one = [frame.loc[frame["group"] == level, "x"] for frame in frames() for level in "ab"]
    assert pooled.params.iloc[0] == pytest.approx(
        np.mean([a.mean() - b.mean() for a, b in zip(one[::2], one[1::2], strict=True)])
    )
    expected = [a.var() / len(a) + b.var() / len(b) for a, b in zip(one[::2], one[1::2], strict=True)]
    np.testing.assert_allclose(pooled.estimates.variances[:, 0], expected)


def test_an_unknown_term_of_a_combination_is_named():
    pooled = analyze(frames(), means("x", by="group"), original_rows=300)

    with pytest.raises(AnalysisError, match="no term 'x\\[group=d\\]'"):
        pooled.difference("x[group=a]", "x[group=d]")


def test_correlations_and_their_large_sample_variance():
    estimates = correlations("x", "z").fit(frames(rows=5000))

    frame = frames(rows=5000)[0]
    assert estimates.values[0, 0] == pytest.approx(frame["x"].corr(frame["z"]))
    jackknife = _jackknife(frame[["x", "z"]].to_numpy())
    # the jackknife and the influence values differ by terms of relative order 1 / rows
    assert estimates.variances[0, 0] == pytest.approx(jackknife, rel=0.005)


def _jackknife(values):
    n = len(values)
    sums, squares, cross = values.sum(0), (values**2).sum(0), (values[:, 0] * values[:, 1]).sum()
    mean = (sums - values) / (n - 1)
    spread = (squares - values**2) / (n - 1) - mean**2
    product = (cross - values[:, 0] * values[:, 1]) / (n - 1) - mean[:, 0] * mean[:, 1]
    left = product / np.sqrt(spread[:, 0] * spread[:, 1])
    return (n - 1) / n * ((left - left.mean()) ** 2).sum()


def test_a_correlation_with_itself_or_a_category_is_refused():
    with pytest.raises(AnalysisError, match="two different columns"):
        correlations("x").fit(frames())
    with pytest.raises(AnalysisError, match="proportions"):
        correlations("x", "group").fit(frames())
    with pytest.raises(AnalysisError, match="proportions"):
        means("group").fit(frames())


def test_quantiles_interpolate_within_bins():
    edges = (-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5)
    estimates = quantiles("x", 0.5, edges=edges).fit(frames())

    shares = frames()[0]["x"].value_counts(normalize=True).sort_index().to_numpy()
    below = np.cumsum(shares)
    at = int(np.searchsorted(below, 0.5))
    before = below[at - 1] if at else 0.0
    assert estimates.values[0, 0] == pytest.approx(edges[at] + (0.5 - before) / shares[at])
    assert estimates.terms == ("x q0.5",)
    assert "nearly normal" in str(analyze(frames(), quantiles("x", 0.5, edges=edges), original_rows=300).summary())


def test_the_variance_of_a_median_is_that_of_repeated_samples():
    edges = tuple(np.arange(-0.5, 6))
    datasets = [pd.DataFrame({"x": np.random.default_rng(i).binomial(5, 0.4, 500).astype(float)}) for i in range(400)]
    estimates = quantiles("x", 0.5, edges=edges).fit(datasets)

    # 400 values: the relative standard error of their variance is sqrt(2 / 400) = 7 %; three of them
    assert estimates.values.var(ddof=1) == pytest.approx(estimates.variances.mean(), rel=0.22)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [(quantiles("x", 1.5, edges=(0, 1)), "between 0 and 1"), (quantiles("x", 0.5), "edges"), (quantiles("x"), "0.0")],
)
def test_quantiles_that_make_no_sense(estimator, message):
    with pytest.raises(AnalysisError, match=message):
        estimator.fit(frames())


def reiter(own, at_mean, constraints):
    """The test in the paper's letters."""
    m, t = len(own), constraints * (len(own) - 1)
    r = (m + 1) / (constraints * (m - 1)) * (np.mean(own) - np.mean(at_mean))
    w = 4 + (t - 4) * (1 - (1 - 2 / t) / r) ** 2
    return np.mean(at_mean) / (constraints * (r - 1)), w


def shuffled(count=20, spread=0.5):
    """Datasets that differ more than by sampling: the effect varies over them."""
    random = np.random.default_rng(5)
    return [frames(effect=random.normal(0.6, spread))[i % 4].sample(250, random_state=i) for i in range(count)]


def test_the_likelihood_ratio_test_equals_statsmodels_log_likelihoods():
    datasets = shuffled()
    test = likelihood_ratio_test(datasets, logit("won ~ x + group"), logit("won ~ x"), original_rows=250)

    full = [smf.logit("y ~ x + group", f.assign(y=f["won"].cat.codes)).fit(disp=False, tol=1e-12) for f in datasets]
    null = [smf.logit("y ~ x", f.assign(y=f["won"].cat.codes)).fit(disp=False, tol=1e-12) for f in datasets]
    own = [2 * (a.llf - b.llf) for a, b in zip(full, null, strict=True)]
    mean_full, mean_null = (np.mean([one.params for one in models], axis=0) for models in (full, null))
    at = [2 * (a.model.loglike(mean_full) - b.model.loglike(mean_null)) for a, b in zip(full, null, strict=True)]
    statistic, dof = reiter(own, at, 2)
    assert test.fallback == ""
    assert (test.statistic, test.df_num) == (pytest.approx(statistic, rel=1e-7), 2)
    assert test.df_denom == pytest.approx(dof, rel=1e-7)
    assert test.pvalue == pytest.approx(stats.f.sf(statistic, 2, dof), rel=1e-6)


def test_the_gaussian_likelihood_ratio_has_its_scale_averaged_too():
    datasets = shuffled()
    test = likelihood_ratio_test(datasets, ols("z ~ x + group"), ols("z ~ x"), original_rows=250)

    own, at = [], []
    fits = {name: [smf.ols(name, frame).fit() for frame in datasets] for name in ("z ~ x + group", "z ~ x")}
    means_of = {k: (np.mean([f.params for f in v], 0), np.mean([f.ssr / 250 for f in v])) for k, v in fits.items()}

    def loss(fit, params, scale):
        residual = fit.model.endog - fit.model.exog @ params
        return 250 * np.log(scale) + residual @ residual / scale

    for full, null in zip(*fits.values(), strict=True):
        own.append(loss(null, null.params, null.ssr / 250) - loss(full, full.params, full.ssr / 250))
        at.append(loss(null, *means_of["z ~ x"]) - loss(full, *means_of["z ~ x + group"]))
    statistic, dof = reiter(own, at, 2)
    assert test.fallback == ""
    assert test.statistic == pytest.approx(statistic, rel=1e-6)
    assert test.df_denom == pytest.approx(dof, rel=1e-6)


def test_independence_is_the_pooled_g_square():
    datasets = shuffled(spread=2.5)
    test = independence_test(datasets, "group", "won", original_rows=250)

    tables = [pd.crosstab(frame["group"], frame["won"], dropna=False).to_numpy() for frame in datasets]
    own = [stats.chi2_contingency(table, lambda_="log-likelihood", correction=False).statistic for table in tables]
    mean = np.mean([table / 250 for table in tables], axis=0)
    ratio = np.log(mean / np.outer(mean.sum(1), mean.sum(0)))
    statistic, dof = reiter(own, [2 * (table * ratio).sum() for table in tables], 2)
    assert test.fallback == ""
    assert test.statistic == pytest.approx(statistic, rel=1e-9)
    assert test.df_denom == pytest.approx(dof, rel=1e-9)
    assert test.df_num == 2


@pytest.mark.parametrize(
    ("full", "null", "message"),
    [
        (logit("won ~ x"), logit("won ~ group"), "not nested"),
        (logit("won ~ x"), logit("won ~ x"), "same"),
        (logit("won ~ x"), ols("won ~ 1"), "differ in more"),
        (glm("x ~ z", sm.families.Gamma()), glm("x ~ 1", sm.families.Gamma()), "scale"),
        (logit("won ~ x", RidgeBootstrap()), logit("won ~ 1"), "remedies"),
    ],
)
def test_likelihood_ratios_that_make_no_sense(full, null, message):
    with pytest.raises(AnalysisError, match=message):
        likelihood_ratio_test(frames(), full, null, original_rows=300)
