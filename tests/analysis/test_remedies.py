"""The two remedies for empty cells: what they do, that they equal row-by-row fits, and that the result says so."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from noisewise.analysis import DropHugeVariances, RidgeBootstrap, analyze, logit
from noisewise.analysis.formulas import designs, parse
from noisewise.analysis.irls import Problem, fit_many
from noisewise.analysis.rows import weighted_rows
from noisewise.errors import AnalysisError

LEVELS = ["a", "b", "rare"]


def frames(count=12, rows=300, rare=0.02, spread=0.5):
    """The level `rare` has no rows in some datasets, and no positive outcome in others."""
    made = []
    for number in range(count):
        random = np.random.default_rng(number)
        group = pd.Categorical(random.choice(LEVELS, rows, p=[0.6, 0.4 - rare, rare]), categories=LEVELS)
        x = random.integers(0, 4, rows).astype(float)
        chance = 1 / (1 + np.exp(-(x - 2 + random.normal(0, spread) + 0.5 * (group == "b"))))
        made.append(pd.DataFrame({"y": (random.random(rows) < chance).astype(float), "group": group, "x": x}))
    made[0]["group"] = pd.Categorical(np.where(made[0]["group"] == "rare", "a", made[0]["group"]), categories=LEVELS)
    made[1].loc[made[1]["group"] == "rare", "y"] = 0.0
    return made


def matrix_of(frame):
    dummies = [(frame["group"] == level).astype(float) for level in LEVELS[1:]]
    return np.column_stack([np.ones(len(frame)), *dummies, frame["x"]])


def ridge_by_rows(matrix, outcome, penalty):
    """The penalised fit on full rows, by plain Newton steps: no weights, no shared design."""
    values = np.zeros(matrix.shape[1])
    for _ in range(100):
        mean = 1 / (1 + np.exp(-matrix @ values))
        gradient = matrix.T @ (outcome - mean) / len(outcome) - penalty * values
        curvature = (matrix * (mean * (1 - mean))[:, None]).T @ matrix / len(outcome) + penalty * np.eye(len(values))
        step = np.linalg.solve(curvature, gradient)
        values = values + step
        if np.abs(step).max() < 1e-13:
            return values
    raise AssertionError("the reference did not converge")


@pytest.mark.parametrize("penalty", [1e-5, 1e-3])
def test_every_bootstrap_fit_equals_the_ridge_on_the_resampled_rows(penalty):
    """Row by row to 1e-8, also where a level is empty or separated in the resample."""
    datasets = frames(4)
    design = designs(parse("y ~ group + x"), weighted_rows(datasets, ("y", "group", "x")))[0][0]
    random = np.random.default_rng(3)
    drawn = [random.integers(0, 300, 300) for _ in range(5)]
    for number, frame in enumerate(datasets):
        rows_in = matrix_of(frame)
        keys = np.column_stack([design.outcome, design.matrix])
        own = np.column_stack([frame["y"], rows_in])
        which = np.array([np.flatnonzero((keys == row).all(axis=1))[0] for row in own])
        counts = np.stack([np.bincount(which[chosen], minlength=len(keys)) for chosen in drawn]).astype(float)
        assert (np.bincount(which, minlength=len(keys)) == design.counts[number]).all()
        fits = fit_many(
            Problem(
                matrix=design.matrix,
                outcome=design.outcome,
                counts=counts,
                rows=counts.sum(axis=1),
                family=sm.families.Binomial(),
                ridge=penalty,
            )
        )
        for chosen, values in zip(drawn, fits.values, strict=True):
            reference = ridge_by_rows(rows_in[chosen], frame["y"].to_numpy()[chosen], penalty)
            np.testing.assert_allclose(values, reference, rtol=1e-8, atol=1e-8)


def test_the_ridge_pools_every_dataset_and_says_where_a_level_was_empty():
    result = analyze(frames(), logit("y ~ group + x", RidgeBootstrap(seed=5)), original_rows=300)

    assert [one.datasets for one in result.pooled] == [12] * 4
    assert not result.left_out
    text = str(result.summary())
    assert "ridge of 1e-05 per row, variances from 50 bootstrap resamples (seed 5)" in text
    assert "group[T.rare]: no rows in 1 of 12 datasets" in text


def test_bootstrap_variances_are_near_those_of_maximum_likelihood_where_no_cell_is_empty():
    datasets = frames(5, rows=2000, rare=0.3)[2:]
    ridge = logit("y ~ group + x", RidgeBootstrap(resamples=1000)).fit(datasets)
    plain = logit("y ~ group + x").fit(datasets)

    # The relative standard error of a standard deviation from 1,000 resamples is 2.2 %; four of them.
    np.testing.assert_allclose(ridge.variances**0.5, plain.variances**0.5, rtol=0.09)
    # The mean of 1,000 resamples is off by 3 % of a standard error, four times that; and the bootstrap's own bias.
    assert (abs(ridge.values - plain.values) < 0.2 * plain.variances**0.5).all()


def test_resampling_depends_on_the_seed_and_the_datasets_number_only():
    model = logit("y ~ group + x", RidgeBootstrap(resamples=8))
    few, many = model.fit(frames(3)), model.fit(frames(6))

    np.testing.assert_allclose(few.values, many.values[:3], rtol=1e-9)
    assert not np.allclose(
        few.values, logit("y ~ group + x", RidgeBootstrap(resamples=8, seed=1)).fit(frames(3)).values
    )


def test_without_a_remedy_undetermined_and_infinite_estimates_are_left_out_and_counted():
    result = analyze(frames(20), logit("y ~ group + x"), original_rows=300, max_left_out=0.5)

    assert len(result.left_out) == 2
    assert any("empty level" in reason for reason in result.left_out)
    assert any("separation" in reason for reason in result.left_out)
    entered = {term: one.datasets for term, one in zip(result.terms, result.pooled, strict=True)}
    assert entered["group[T.rare]"] == 20 - sum(result.left_out.values())
    assert entered["x"] == 20
    assert f"Datasets that entered, by term: {entered['group[T.rare]']} to 20 of 20." in result.notes


def test_huge_variances_are_dropped_by_the_stated_threshold_and_counted():
    datasets = frames(20)
    plain = logit("y ~ group + x").fit(datasets)
    threshold = float(np.sort(plain.variances[plain.used])[-2])
    result = analyze(
        datasets, logit("y ~ group + x", DropHugeVariances(threshold=threshold)), original_rows=300, max_left_out=0.5
    )

    reason = f"an estimate's variance is {threshold:g} or more"
    huge = ~plain.used[:, 2] | (plain.variances[:, 2] >= threshold)
    assert result.pooled[2].datasets == 20 - huge.sum()
    assert reason in result.left_out
    assert f"estimates with a variance of {threshold:g} or more are left out" in str(result.summary())


def test_dropping_too_many_is_refused_and_the_remedy_named():
    datasets = frames(20)
    for frame in datasets[:8]:
        frame.loc[frame["group"] == "rare", "y"] = 1.0

    with pytest.raises(AnalysisError, match=r"'group\[T.rare\]' could be estimated in .*RidgeBootstrap") as refused:
        analyze(datasets, logit("y ~ group + x", DropHugeVariances()), original_rows=300)
    assert "an estimate's variance is 1000 or more" in str(refused.value)
