"""Results from other software: a tidy table in, a tidy table of the same kind out."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from noisewise.analysis.analyze import analyze
from noisewise.analysis.glm import ols
from noisewise.analysis.mixtures import FewDatasets
from noisewise.analysis.tables import pool_results, pool_table
from noisewise.cli.app import app
from noisewise.errors import AnalysisError
from released import make_release

BROOM = ["term", "estimate", "std.error", "statistic", "df", "p.value", "conf.low", "conf.high"]


def tidy(datasets=6):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "dataset": np.repeat(np.arange(1, datasets + 1), 2),
            "term": ["(Intercept)", "x"] * datasets,
            "estimate": random.normal([1, 2] * datasets, 0.5),
            "std_error": 0.1,
        }
    )


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
def test_the_kind_of_table_that_goes_in_comes_out(make):
    result = pool_table(make(tidy()), rows=100, original_rows=100)

    assert type(result) is type(make(tidy()))
    names = list(result.column_names if isinstance(result, pa.Table) else result.columns)
    assert names[:8] == BROOM


def test_the_numbers_are_those_of_analyze_on_the_same_estimates():
    datasets = [pd.DataFrame({"x": np.arange(50.0), "y": np.random.default_rng(i).normal(size=50)}) for i in range(8)]
    pooled = analyze(datasets, ols("y ~ x"), original_rows=50)
    table = pd.DataFrame(
        [
            {"dataset": i, "term": term, "estimate": values[j], "std.error": covariance[j, j] ** 0.5}
            for i, (values, covariance) in enumerate(
                zip(pooled.estimates.values, pooled.estimates.covariances, strict=True)
            )
            for j, term in enumerate(pooled.terms)
        ]
    )

    result = pool_table(table.sample(frac=1, random_state=0), rows=50, original_rows=50).set_index("term")

    expected = pooled.summary_frame().set_index("term").loc[list(result.index)]
    for name in BROOM[1:]:
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-12)


def test_rows_left_out_are_counted():
    table = tidy(20)
    table.loc[3, "estimate"] = np.nan
    table = table.drop(index=8)

    pooled = pool_results(table, rows=100, original_rows=100)

    assert dict(pooled.left_out) == {
        "a term is not in the table": 1,
        "an estimate or standard error is empty or not finite": 1,
    }
    assert pool_table(table, rows=100, original_rows=100)["datasets"].tolist() == [19, 19]


def test_covariances_are_not_invented():
    pooled = pool_results(tidy(), rows=100, original_rows=100)

    for ask in (pooled.cov_params, lambda: pooled.wald_test("x"), lambda: pooled.difference("x", "(Intercept)")):
        with pytest.raises(AnalysisError, match="covariances between terms are unknown"):
            ask()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(columns={"estimate": "coef"}), "no column 'estimate'"),
        (lambda t: t.drop(columns="std_error"), "no column 'std_error'"),
        (lambda t: t.assign(dataset=1).iloc[:2], "one dataset only"),
        (lambda t: pd.concat([t, t.iloc[:1]]), "more than once"),
        (lambda t: t.assign(estimate="1,5"), "not a number"),
        (lambda t: t.assign(std_error=-1.0), "negative"),
        (lambda t: t.assign(dataset=np.nan), "empty cell"),
        (lambda t: t.assign(estimate=[np.nan, 1.0] * 6), "0 of 6"),
        (lambda t: {"dataset": [1]}, "not a data frame"),
    ],
)
def test_bad_tables_are_refused_with_the_next_step(change, message):
    with pytest.raises(AnalysisError, match=message):
        pool_table(change(tidy()), rows=100, original_rows=100)


def test_the_command_pools_a_csv_and_takes_the_rows_from_a_release(tmp_path):
    make_release(tmp_path / "r", datasets=6)
    tidy().to_csv(tmp_path / "t.csv", index=False)
    arguments = ["pool", str(tmp_path / "t.csv"), "--release", str(tmp_path / "r")]

    shown = CliRunner().invoke(app, arguments)
    written = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out.csv"), "--rule", "few-datasets"])

    assert "(Intercept)" in shown.stdout
    assert written.exit_code == 0
    result = pd.read_csv(tmp_path / "out.csv")
    expected = pool_table(tidy(), rule=FewDatasets(), rows=300, original_rows=300)
    np.testing.assert_allclose(result["conf.low"], expected["conf.low"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.csv", "--rule", "rubin"], "--rule is 'rubin'"),
        (["none.csv"], "none.csv does not exist"),
        (["empty.csv"], "Cannot read"),
        (["t.csv", "--rows", "-4", "--original-rows", "9"], "rows is -4"),
        (["t.csv", "--rows", "9", "--original-rows", "0"], "original_rows is 0"),
        (["t.csv", "--alpha", "5"], "alpha is 5"),
        (["t.csv", "--datasets", "3"], "results of 6 datasets, more than the 3"),
        (["t.csv", "--datasets", "60"], "6 of 60 datasets"),
        (["t.csv", "-o", "nowhere/out.csv"], "Give a file in a folder that is there"),
    ],
)
def test_the_command_refuses_with_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    tidy().to_csv("t.csv", index=False)
    (tmp_path / "empty.csv").touch()

    done = CliRunner().invoke(app, ["pool", *arguments])

    assert done.exit_code == 8
    assert message in done.output.replace("\n", " ")


def test_datasets_without_any_result_are_counted():
    table = tidy(20)

    pooled = pool_results(table[table["dataset"] != 7], rows=100, original_rows=100, datasets=20)

    assert pooled.left_out == {"the dataset is not in the table": 1}
    assert [one.datasets for one in pooled.pooled] == [19, 19]
    assert "Left out in 1 of 20 datasets: the dataset is not in the table." in pooled.notes


@pytest.mark.parametrize(
    "names",
    [
        {"dataset": ".imp", "std_error": "std.error"},
        {"dataset": "_mj", "term": "parm", "std_error": "stderr"},
        {"dataset": "_Imputation_", "term": "Parameter", "estimate": "Estimate", "std_error": "StdErr"},
        {"dataset": "Imputation_", "std_error": "Std. Error"},
    ],
    ids=["r", "stata", "sas", "spss"],
)
def test_the_names_of_other_software_are_understood(names):
    renamed = pool_table(tidy().rename(columns=names), rows=100, original_rows=100)

    pd.testing.assert_frame_equal(renamed, pool_table(tidy(), rows=100, original_rows=100))
