"""`report`, `show` and `certify` as a user meets them."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import released
from noisewise.artifacts import Release, damage, read_release
from noisewise.artifacts.timing import read_timing, write_timing
from noisewise.cli import app
from noisewise.posterior.fit import fit
from noisewise.synthesis import synthesize
from small_release import small_counts

FORMULA = "income ~ owner"


def _run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return released.make_release(tmp_path_factory.mktemp("shown") / "release")


def test_json_is_what_the_report_writes_and_writes_nothing_itself(release):
    before = sorted(path.name for path in release.folder.iterdir())
    printed = _run("report", release.folder, "--json")
    after = sorted(path.name for path in release.folder.iterdir())
    written = _run("report", release.folder)

    assert printed.exit_code == written.exit_code == 0
    assert before == after
    assert printed.stdout.encode() == (release.folder / "report.json").read_bytes()
    assert json.loads(printed.stdout)["table"] == "people"


def test_show_has_the_verdict_a_bar_per_marginal_and_the_intervals(release):
    shown = _run("show", release.folder)

    assert shown.exit_code == 0, shown.output
    assert "✓ Fit for use" in shown.stdout
    assert shown.stdout.count("█ ") == len(released.MARGINALS)
    assert "factor of at most e^1" in shown.stdout
    assert "●" in shown.stdout
    assert "━ pooled, 95 % interval for the population" in shown.stdout


def test_the_time_of_the_fit_is_told_and_is_not_in_the_release(tmp_path):
    one, two = tmp_path / "one" / "release", tmp_path / "two" / "release"
    Release(one).write_noisy_counts(small_counts())
    assert _run("fit", one, "--method", "laplace").exit_code == 0
    shutil.copytree(one, two)
    for folder in (one, two):
        assert _run("report", folder).exit_code == 0

    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}
    timing = one.with_name("release.timing.json")
    slow = read_timing(one, read_release(one).posterior().hash).model_copy(update={"fit_seconds": 754.2})
    write_timing(one, slow)
    words = slow.words
    assert words.startswith("12 min 34 s on ")
    assert f"The fit took {words}." in _run("show", one).stdout
    assert _run("report", one, "--output", tmp_path / "page.html").exit_code == 0
    assert words in (tmp_path / "page.html").read_text("utf-8")
    assert words not in (one / "report.html").read_text("utf-8")

    another = slow.model_copy(update={"posterior_hash": "0" * 64})
    for content in (another.model_dump_json(), "{", "[]" * 10_000, '{"fit_seconds": NaN}'):
        timing.write_text(content)
        shown = _run("show", one)
        assert shown.exit_code == 0
        assert "The fit took" not in shown.stdout


def test_show_reads_a_zip_file(release, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", release.folder)

    assert "people" in _run("show", packed).stdout


def test_an_analysis_that_cannot_be_pooled_is_told_and_the_report_is_there(tmp_path):
    made, target = released.posterior(), Release(tmp_path / "release")
    intended = ({"model": "binomial", "formula": FORMULA}, {"model": "binomial", "formula": "age ~ owner"})
    target.write_noisy_counts(made.noisy_counts, intended)
    target.write_posterior(made)
    target.write_datasets(synthesize(made, 20, seed=1))

    done = _run("report", target.folder)

    assert done.exit_code == 8
    assert "age ~ owner could not be pooled." in done.stderr
    content = json.loads((target.folder / "report.json").read_text("utf-8"))
    assert [result["title"] for result in content["results"]] == [FORMULA]
    assert [one["title"] for one in content["failed"]] == ["age ~ owner"]
    assert damage(target) == []


def test_certify_attaches_its_certificate_to_release_and_report(tmp_path):
    posterior, target = fit(small_counts(rows=1_500, stddev=4.0)), Release(tmp_path / "release")
    target.write_noisy_counts(posterior.noisy_counts)
    target.write_posterior(posterior)
    target.write_datasets(synthesize(posterior, 12, seed=1, allow_untrusted=True))
    words = ["certify", target.folder, "--analyses", "grade ~ age", "--repeats", 3, "--workers", 1]

    none = _run("certify", target.folder)
    done = _run(*words, "--model", "binomial", "--allow-untrusted")
    shown = _run("show", target.folder)

    assert none.exit_code == 8
    assert "names no analyses" in none.stderr
    assert done.exit_code == 0, done.output
    assert "Only 3 rehearsals" in "".join(target.report_content()["certificate"]["analyses"][0]["terms"][0]["reasons"])
    assert target.certificate().datasets == 12
    assert "Coverage certificate: grade ~ age (3 rehearsals)" in shown.stdout
    assert "doubtful" in shown.stdout
    assert damage(target) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]
