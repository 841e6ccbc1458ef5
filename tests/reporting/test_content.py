"""What the report says: from public quantities only, the same for the same release, in plain values."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import released
from noisewise import read_release, report
from noisewise.analysis import analyze, glm
from noisewise.analysis.tables import pool_results
from noisewise.artifacts import Release, damage
from noisewise.drawing.legible import legible, legible_values
from noisewise.drawing.scales import tick_text
from noisewise.exports import export
from noisewise.exports.formats import FORMATS
from noisewise.noisy_counts import Measurement, NoisyCounts, observed_counts
from noisewise.posterior.expected import expected_counts
from noisewise.reporting.content import as_json, report_content
from noisewise.reporting.fitness import what_was_done
from noisewise.reporting.headline import power, promise
from noisewise.reporting.html import number, render, to_error
from noisewise.reporting.measurements import measured_pairs, pair_content
from noisewise.study.analyses import estimator_of
from small_release import PRIVACY, SCHEMA, posterior_by_hand, small_counts

FORMULA = "income ~ owner"


def pooled(release):
    return analyze(release.datasets(), glm(FORMULA, family="binomial"))


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return released.make_release(tmp_path_factory.mktemp("report") / "release")


@pytest.fixture(scope="module")
def content(release):
    return report_content(release, {FORMULA: pooled(release)})


def test_the_same_release_gives_the_same_bytes_wherever_it_lies(release, tmp_path):
    elsewhere = shutil.copytree(release.folder, tmp_path / "another place")
    for folder in (release.folder, elsewhere):
        report(Release(folder), {FORMULA: pooled(Release(folder))})

    for name in ("report.html", "report.json"):
        first, second = ((folder / name).read_bytes() for folder in (release.folder, elsewhere))
        assert first == second
        assert str(tmp_path).encode() not in second
        assert str(release.folder).encode() not in first
    assert damage(release) == []
    assert len(release.datasets()) == 30  # writing a report withdraws nothing else


def test_the_json_is_the_content_and_holds_all_six_parts(release, content):
    path = report(release, {FORMULA: pooled(release)})
    written = json.loads((path.parent / "report.json").read_text("utf-8"))

    assert written == json.loads(as_json(content))
    assert release.report_content() == written
    for part in ("headline", "measurements", "posterior", "results", "use", "glossary"):
        assert written[part]
    assert written["format"] == "noisewise-report"


def test_nothing_but_public_files_is_read(release, content, tmp_path):
    """The release alone, copied to an empty place, gives the same content."""
    alone = read_release(shutil.copytree(release.folder, tmp_path / "alone"))

    assert as_json(report_content(alone, {FORMULA: pooled(alone)})) == as_json(content)


def test_expected_counts_are_the_posteriors_own():
    posterior = posterior_by_hand(draws=(2, 30))
    subsets = [("ward",), ("grade", "age"), ("ward", "smoker")]

    found = expected_counts(posterior, subsets)

    draws = np.stack([posterior.model.probabilities(theta) for theta in posterior.draws]) * posterior.noisy_counts.rows
    ward_smoker, age_grade = draws[:, :9].reshape(-1, 3, 3), draws[:, -6:].reshape(-1, 3, 2)
    np.testing.assert_allclose(found["ward", "smoker"].mean, ward_smoker.mean(0))
    np.testing.assert_allclose(found["ward",].mean, ward_smoker.sum(2).mean(0))
    np.testing.assert_allclose(found["grade", "age"].low, np.quantile(age_grade, 0.025, axis=0).T)
    np.testing.assert_allclose(found["grade", "age"].high, np.quantile(age_grade, 0.975, axis=0).T)


def test_what_was_done_about_doubts_is_told():
    made = posterior_by_hand(small_counts())

    def done(trusted=True, **record):
        verdict = made.verdict.model_copy(update={"trusted": trusted})
        return " ".join(what_was_done(replace(made, verdict=verdict, record=made.record.model_copy(update=record))))

    quick = "Hmc, the quick method, was tried first"
    assert done(method="Laplace", choice="") == "Laplace was asked for, and nothing else was tried."
    assert done(method="Hmc", choice=f"{quick}.") == f"{quick}. It passed, and nothing else was tried."
    assert done(method="Nuts", choice=f"{quick}: it stuck.") == f"{quick}: it stuck. Then Nuts was run."
    assert "were added once" in done(method="Nuts", choice=f"{quick}: it stuck.", extended=1)
    assert "not fit for use" in done(trusted=False)


def test_noisy_counts_of_a_column_weigh_every_marginal_by_its_precision():
    one, two = np.array([[10, 20], [30, 40]]), np.array([[1, 2, 3], [4, 5, 6]])
    measurements = (
        Measurement(marginal=("smoker", "age"), values=np.ones((3, 3), np.int64), stddev=1.0),
        Measurement(marginal=("age", "grade"), values=np.array([[10, 20], [30, 40], [50, 60]]), stddev=2.0),
    )
    counts = NoisyCounts(schema=SCHEMA, rows=100, measurements=measurements, privacy=PRIVACY)

    seen = observed_counts(counts, ("age",))

    assert one.sum() == 100
    assert two.sum() == 21
    # Sums over 3 cells of variance 1, and over 2 cells of variance 4: precisions 1/3 and 1/8.
    weights = np.array([1 / 3, 1 / 8]) / (1 / 3 + 1 / 8)
    np.testing.assert_allclose(seen.counts, weights[0] * 3 + weights[1] * np.array([30, 70, 110]))
    assert seen.stddev == pytest.approx((1 / 3 + 1 / 8) ** -0.5)
    assert observed_counts(counts, ("ward",)) is None
    assert observed_counts(counts, ("smoker", "grade")) is None


def test_the_longer_column_of_a_pair_runs_down_the_page():
    counts = small_counts()
    expected = expected_counts(posterior_by_hand(counts), [("age", "grade")])["age", "grade"]

    pair = pair_content(counts, ("age", "grade"), expected)

    assert pair["columns"] == ["age", "grade"]
    assert np.shape(pair["synthetic"]) == np.shape(pair["spreads"]) == (3, 2)
    assert pair["noisy"] == counts.measurements[2].values.tolist()
    wide = NoisyCounts(
        schema=SCHEMA,
        rows=500,
        measurements=(Measurement(marginal=("smoker", "age"), values=np.ones((3, 3), np.int64), stddev=1.0),),
        privacy=PRIVACY,
    )
    assert measured_pairs(wide) == [("smoker", "age")]


def test_the_verdict_has_a_word_and_reasons(tmp_path):
    good = released.make_release(tmp_path / "good")
    bad = released.make_release(tmp_path / "bad", reasons=("R-hat is 1.2.",))
    unfinished = Release(tmp_path / "unfinished")
    unfinished.write_noisy_counts(small_counts())

    heads = [report_content(one, {})["headline"] for one in (good, bad, unfinished)]

    assert [head["verdict"] for head in heads] == ["Fit for use", "Not fit for use", "Not finished"]
    assert [head["level"] for head in heads] == ["good", "bad", "care"]
    assert "R-hat is 1.2." in heads[1]["reasons"]
    assert "no posterior" in heads[2]["reasons"][0]
    assert "Not finished" in render(report_content(unfinished, {}))


def test_an_analysis_that_was_not_measured_or_not_pooled_asks_for_care(tmp_path):
    release = released.make_release(tmp_path / "release")
    formula = "income ~ race"
    result = analyze(release.datasets(), glm(formula, family="binomial"))

    unsupported = report_content(release, {formula: result})
    failed = report_content(release, {}, {FORMULA: "Separation."})

    assert unsupported["headline"]["verdict"] == failed["headline"]["verdict"] == "Use with care"
    assert "describes an assumption of the model" in " ".join(unsupported["headline"]["reasons"])
    marks = {row["term"]: row["marks"] for row in unsupported["results"][0]["rows"]}
    assert "†" in marks["race[T.Black]"]
    assert "Separation." in render(failed)


def test_the_naive_interval_is_that_of_the_first_dataset(release, content):
    result = pooled(release)
    row = content["results"][0]["rows"][1]
    value, variance = result.estimates.values[0, 1], result.estimates.variances[0, 1]

    assert row["naive"]["low"] == pytest.approx(value - 1.959964 * variance**0.5, rel=1e-5)
    inside = abs(result.estimates.values[:, 1] - row["estimate"]) < 1.959964 * result.estimates.variances[:, 1] ** 0.5
    assert row["naive_share"] == pytest.approx(inside.mean(), abs=1e-3)


def test_an_interval_without_ends_is_drawn_written_and_stored(release):
    """The spread between datasets may come out as that within them: then no degrees of freedom are left."""
    values = np.linspace(-1, 1, 20)
    stderr = (1.05 * (1 - 1e-5) * values.var(ddof=1)) ** 0.5
    table = pa.table({"dataset": range(20), "term": ["a"] * 20, "estimate": values, "std_error": [stderr] * 20})

    content = report_content(release, {FORMULA: pool_results(table, rows=100, original_rows=100)})

    assert content["results"][0]["rows"][0]["high"] == np.inf
    assert "−∞ to ∞" in render(content)
    assert json.loads(as_json(content))["results"][0]["rows"][0]["high"] is None
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json({"estimate": np.nan})


def test_the_two_kinds_of_interval_are_never_called_by_one_name(content):
    page = re.sub(r"<[^>]*>", " ", render(content))
    words = {entry["word"] for entry in content["glossary"]}

    assert {"Confidence interval for the population", "Privacy noise interval"} <= words
    assert "95 % interval for the population" in page
    assert "95 % privacy noise interval" in page
    assert not re.search(r"confidence interval(?! for the population)", page, re.IGNORECASE)
    assert not re.search(r"credible", page, re.IGNORECASE)


def test_numbers_are_written_as_people_write_them():
    assert power("4.19e-10") == "4.19 × 10⁻¹⁰"
    assert power("-0.5") == "−0.5"
    assert power("1e+30") == "1 × 10³⁰"
    assert number(4884.2) == "4,884"
    assert [tick_text(value) for value in (-5000, 950, 20_000, 2e6)] == ["−5k", "950", "20k", "2M"]


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.92, 0.111, "0.920"),
        (-0.0763, 0.0983, "−0.0763"),
        (1234.5678, 12.3, "1,234.6"),
        (3.2e6, 4e5, "3,200,000"),
        (0.00011, 9.5e-12, "0.00011"),
        (2.5, 0.0, "2.5"),
        (float("inf"), 0.1, "∞"),
        (None, 0.1, "–"),
    ],
)
def test_a_result_has_the_decimals_that_its_error_leaves_it(value, error, shown):
    assert to_error(value, error) == shown


def test_the_promise_names_the_unit_that_is_protected(release):
    manifest = release.manifest()
    person = manifest.privacy.model_copy(
        update={"unit": "all rows that share a value of 'person'", "max_rows_per_unit": 3}
    )

    assert "any one of the 300 rows" in promise(manifest)
    assert "(at most 3 rows)" in promise(manifest.model_copy(update={"privacy": person}))


def test_the_python_snippet_runs_and_gives_the_reports_numbers(release, content, tmp_path, monkeypatch, capsys):
    shutil.copytree(release.folder, tmp_path / "release")
    monkeypatch.chdir(tmp_path)
    namespace = {}

    exec(compile(content["use"]["python"], "snippet", "exec"), namespace)

    assert capsys.readouterr().out.startswith("Generalized linear model: income ~ owner")
    written = [row["estimate"] for row in content["results"][0]["rows"]]
    np.testing.assert_allclose(namespace["pooled"].params, written, rtol=1e-5)


def test_without_an_analysis_the_snippet_makes_a_table_of_a_measured_pair(tmp_path, monkeypatch, capsys):
    made, folder = released.posterior(), tmp_path / "release"
    target = Release(folder)
    target.write_noisy_counts(made.noisy_counts)
    target.write_posterior(made)
    target.write_datasets(released.synthesize(made, 5, seed=1))
    monkeypatch.chdir(tmp_path)
    use = report_content(target, {})["use"]

    exec(compile(use["python"], "snippet", "exec"), {})

    assert "owner" in use["python"]
    assert capsys.readouterr().out
    assert use["r"] is use["stata"] is None


def run_in_r(tmp_path, formula, remedy, finish, edit=str):
    """Run the snippet for R, and give back what its last line writes together with the result in Python."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        if os.environ.get("CI"):
            pytest.fail("R is missing; in CI it must be there: apt-get install r-base-core.")
        pytest.skip("R is not installed.")
    target = Release(tmp_path / "release")
    made = released.posterior()
    intended = {"model": "binomial", "formula": formula} | ({"remedy": remedy} if remedy else {})
    target.write_noisy_counts(made.noisy_counts, (intended,))
    target.write_posterior(made)
    target.write_datasets(released.synthesize(made, 12, seed=1))
    result = analyze(target.datasets(), estimator_of(intended))
    export(target.datasets(), tmp_path / "exported", FORMATS["csv"])
    code = report_content(target, {formula: result})["use"]["r"]
    (tmp_path / "snippet.R").write_text(edit(code) + finish, "utf-8")

    done = subprocess.run([rscript, "snippet.R"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    return np.genfromtxt(tmp_path / "pooled.csv", delimiter=",", skip_header=1)[:, 1:], result


@pytest.mark.parametrize("remedy", ["", "drop-huge-variances"])
def test_the_r_snippet_pools_to_the_same_numbers(tmp_path, remedy):
    finish = 'write.csv(data.frame(estimate, total, df, low = estimate - half), "pooled.csv")\n'

    table, result = run_in_r(tmp_path, "income ~ race + owner + `hours-per-week`", remedy, finish)

    wanted = {
        "estimate": result.params.to_numpy(),
        "total": result.bse.to_numpy() ** 2,
        "df": result.df.to_numpy(),
        "low": result.conf_int().to_numpy()[:, 0],
    }
    for column, values in enumerate(wanted.values()):
        np.testing.assert_allclose(np.sort(table[:, column]), np.sort(values), rtol=1e-4)


@pytest.mark.parametrize(("broken", "agrees"), [(("", ""), True), (("1e-05", "0.03"), False)])
def test_the_r_snippet_of_the_ridge_agrees_up_to_its_resamples(tmp_path, broken, agrees):
    """Means over 12 datasets of 50 resamples each: the two programs' differ by √(2 within / 600) in standard deviation.

    Six of them are allowed. Variances of 50 resamples vary by √(2 / 49), the difference of two programs' means over 12
    datasets by 8 %: five times that is. The broken one has another ridge.
    """
    finish = 'write.csv(data.frame(estimate, within), "pooled.csv")\n'

    table, result = run_in_r(
        tmp_path, "income ~ race + owner", "ridge-bootstrap", finish, lambda code: code.replace(*broken)
    )

    within = np.array([one.within for one in result.pooled])
    away = np.abs(np.sort(table[:, 0]) - np.sort(result.params.to_numpy()))
    assert (away <= 6 * np.sqrt(2 * within.max() / 600)).all() == agrees
    if agrees:
        np.testing.assert_allclose(np.sort(table[:, 1]), np.sort(within), rtol=5 * 0.08)


def test_the_stata_snippet_says_what_stata_has_not(tmp_path):
    made = released.posterior()
    for remedy, words in (("ridge-bootstrap", "Stata has no ridge"), ("drop-huge-variances", "< 1000 post results")):
        target = Release(tmp_path / remedy)
        intended = {"model": "binomial", "formula": "income ~ owner", "remedy": remedy}
        target.write_noisy_counts(made.noisy_counts, (intended,))

        assert words in report_content(target, {})["use"]["stata"]


def test_the_stata_snippet_has_the_exported_names_and_levels(tmp_path):
    formula = "income ~ race + owner + `hours-per-week`:region"
    target = Release(tmp_path / "release")
    made = released.posterior()
    target.write_noisy_counts(made.noisy_counts, ({"model": "binomial", "formula": formula},))

    code = report_content(target, {})["use"]["stata"]

    assert "generate byte outcome_is_second = income == 2 if !missing(income)" in code
    assert "logit outcome_is_second ib1.race i.owner c.hours_per_week#ib10.region" in code
    assert "(1 + 1/m) * between - within" in code


@pytest.mark.parametrize(
    ("model", "formula"),
    [("gaussian", "np.log(age) ~ owner"), ("ordered-logit", "income ~ owner"), ("gamma", "age ~ 1")],
)
def test_other_software_gets_a_snippet_only_where_it_has_the_same_words(tmp_path, model, formula):
    target = Release(tmp_path / "release")
    target.write_noisy_counts(released.posterior().noisy_counts, ({"model": model, "formula": formula},))

    use = report_content(target, {})["use"]

    assert use["r"] is use["stata"] is None
    assert formula in use["python"]


def test_characters_that_turn_or_control_the_text_are_spelled_out():
    assert legible("a\u202eb\x1b[2J") == "a⟨U+202E⟩b⟨U+001B⟩[2J"
    assert legible("🧑\u200d🤝 مرحبا\n") == "🧑\u200d🤝 مرحبا\n"
    assert legible_values({"k\u2066": ["\u200f", 1, None]}) == {"k⟨U+2066⟩": ["⟨U+200F⟩", 1, None]}
