"""The R script in docs fits glm to each dataset and pools in plain R; its results are ours."""

import io
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from conftest import REPOSITORY, absent
from noisewise.analysis import DropHugeVariances, analyze, glm
from noisewise.exports import Csv, export, export_stacked
from released import make_release

NUMBERS = ["estimate", "std.error", "statistic", "df", "p.value", "conf.low", "conf.high"]


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("release") / "r", datasets=40).datasets()


@pytest.fixture(scope="module")
def places(datasets, tmp_path_factory):
    """The same datasets in both forms that the script reads."""
    here = tmp_path_factory.mktemp("csv")
    export(datasets, here / "folder", Csv())
    return {"folder": here / "folder", "stacked": export_stacked(datasets, here / "all.zip", Csv())}


def in_r(*arguments):
    if shutil.which("Rscript") is None:
        absent("R is not installed: on Debian, the package r-base-core.")
    script = REPOSITORY / "docs" / "pool.R"
    done = subprocess.run(["Rscript", script, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pd.read_csv(io.StringIO(done.stdout))


@pytest.mark.parametrize(
    ("formula", "family", "place", "terms"),
    [
        ("income ~ owner + race + region", "binomial", "folder", ["raceBlack", "raceOther", "region20", "region30"]),
        ("`hours-per-week` ~ income", "gaussian", "stacked", ["(Intercept)", "incomehigh"]),
        ("`hours-per-week` ~ race", "poisson", "stacked", ["raceBlack", "raceOther"]),
    ],
)
def test_r_pools_what_we_pool(datasets, places, formula, family, place, terms):
    ours = analyze(datasets, glm(formula, family, DropHugeVariances())).summary_frame()
    theirs = in_r(places[place], 300, formula, family)

    assert theirs["term"].tolist()[-len(terms) :] == terms
    assert theirs["datasets"].tolist() == ours["datasets"].tolist()
    # R's vcov is that of the step before the last, and its fits stop when the deviance changes by less than 1e-12 of
    # itself: steps of up to 1e-6 standard errors, and as much again in the variances.
    # With hardly a degree of freedom a quantile of t magnifies that without limit; such intervals are not compared.
    sound = (ours["df"] > 1).to_numpy()
    assert sound.sum() >= len(sound) / 2
    for name in NUMBERS:
        np.testing.assert_allclose(theirs[name][sound], ours[name][sound], rtol=2e-5, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(theirs["estimate"], ours["estimate"], rtol=2e-5)
    np.testing.assert_allclose(theirs["std.error"], ours["std.error"], rtol=2e-4)


def test_the_rule_for_missing_data_would_not_pass(datasets, places):
    """The broken twin: a plus in place of the minus."""
    ours = analyze(datasets, glm("income ~ owner", "binomial")).summary_frame()
    within, between = ours["within"], ours["between"]

    theirs = in_r(places["folder"], 300, "income ~ owner", "binomial")

    wrong = np.sqrt((1 + 1 / 40) * between + within)
    assert (abs(theirs["std.error"] / wrong - 1) > 0.01).all()
    np.testing.assert_allclose(theirs["std.error"], ours["std.error"], rtol=2e-5)


def test_a_level_that_some_datasets_lack_is_left_out_there_in_r_too(datasets, tmp_path):
    tables = [table.to_pandas() for table in datasets]
    for table in tables[:2]:
        table["race"] = table["race"].where(table["race"] != "Other", "White")
    export(datasets, tmp_path / "csv", Csv())
    for number, table in enumerate(tables[:2], start=1):
        table.to_csv(tmp_path / "csv" / f"dataset-{number:03d}.csv", index=False)
    ours = analyze(tables, glm("income ~ race", "binomial", DropHugeVariances()), original_rows=300).summary_frame()

    theirs = in_r(tmp_path / "csv", 300, "income ~ race", "binomial")

    assert theirs["datasets"].tolist() == ours["datasets"].tolist() == [40, 40, 38]
    np.testing.assert_allclose(theirs["estimate"], ours["estimate"], rtol=2e-5)
