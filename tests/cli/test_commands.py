"""The commands as a user meets them: what they print, where, and how they end."""

import json
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from noisewise.artifacts import Release, damage
from noisewise.cli import app
from small_study import SMALL_STUDY, small_study


def _run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that went through `run`, and what that printed."""
    folder = tmp_path_factory.mktemp("study")
    small_study(folder)
    result = _run("run", folder / "study.toml")
    assert result.exit_code == 0, result.output
    return folder / "study-release", result


def test_run_prints_the_verdict_the_table_and_where_things_are(finished):
    folder, result = finished

    assert "Posterior (Laplace)" in result.stdout
    assert "\nx  " in result.stdout
    assert f"Release: {folder}" in result.stdout
    assert str(folder / "report.html") in result.stdout


def test_the_stages_one_by_one_do_what_run_does(tmp_path, finished):
    small_study(tmp_path)
    release = tmp_path / "out"

    outputs = [
        _run("measure", tmp_path / "study.toml", "--release", release),
        _run("fit", release, "--seed", 3),
        _run("synthesize", release, "--datasets", 20),
        _run("analyze", release),
        _run("report", release),
        _run("verify", release),
    ]

    assert [output.exit_code for output in outputs] == [0] * 6, [output.output for output in outputs]
    assert sorted(Release(release).manifest().files) == sorted(Release(finished[0]).manifest().files)
    assert f"noisewise fit {release}" in outputs[0].stdout
    assert "factor of at most e^" in " ".join(outputs[5].stdout.split())


def test_verify_says_what_is_promised_and_what_is_not(finished):
    result = _run("verify", finished[0])

    assert result.exit_code == 0
    assert "Not protected" in result.stdout
    assert "the number of rows" in result.stdout


def test_an_analysis_of_ones_own(finished):
    result = _run("analyze", finished[0], "--formula", "y ~ 1", "--model", "binomial")

    assert result.exit_code == 0
    assert "Intercept" in result.stdout


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (("epsilon = 1.0", "epsilon = -1"), "it must lie above 0", 4),
        (("epsilon = 1.0", "epsilon = 1.0\ndelta = 0.1"), "delta must be below 1/rows", 5),
        (('source = "table.csv"', 'source = "none.csv"'), "source-not-found", 5),
        (('source = "table.csv"', 'source = "table.xlsx"'), "source-not-supported", 5),
        (('file = "table.schema.toml"', 'file = "none.toml"'), "Cannot read the schema", 3),
        (('formula = "y ~ x"', 'formula = "y ~ xx"'), "Did you mean 'x'", 3),
    ],
)
def test_what_is_wrong_with_a_study_is_said_in_one_message(tmp_path, change, words, code):
    small_study(tmp_path, SMALL_STUDY.replace(*change))

    result = _run("run", tmp_path / "study.toml")

    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "study-release").exists()


def test_a_table_that_does_not_fit_is_refused_without_a_value_or_a_trace(tmp_path):
    small_study(tmp_path)
    (tmp_path / "table.csv").write_text("x,y\ntrue,CANARY-7\n" + "true,yes\n" * 50)

    result = _run("measure", tmp_path / "study.toml")

    assert result.exit_code == 5
    assert "column 'y'" in result.stderr
    assert "value-outside-schema" in result.stderr
    assert "CANARY" not in result.output
    assert not (tmp_path / "study-release").exists()


def test_measure_has_no_debug():
    assert _run("measure", "x.toml", "--debug").exit_code == 2


def test_debug_shows_the_trace_elsewhere(tmp_path):
    result = _run("fit", tmp_path, "--debug")

    assert result.exception is not None
    assert "manifest.json" in str(result.exception)


@pytest.mark.parametrize("command", ["fit", "synthesize", "analyze", "verify", "report"])
def test_a_folder_that_is_no_release_is_named(command, tmp_path):
    result = _run(command, tmp_path)

    assert result.exit_code == 7
    assert "holds no manifest.json" in result.stderr


def test_an_edited_release_does_not_verify(tmp_path):
    small_study(tmp_path)
    release = tmp_path / "out"
    _run("measure", tmp_path / "study.toml", "--release", release)
    manifest = json.loads((release / "manifest.json").read_text())
    manifest["rows"] = 12
    (release / "manifest.json").write_text(json.dumps(manifest))

    result = _run("verify", release)

    assert result.exit_code == 7
    assert "not those the manifest describes" in result.stderr


def test_stages_out_of_order_say_what_comes_first(tmp_path):
    small_study(tmp_path)
    release = tmp_path / "out"
    _run("measure", tmp_path / "study.toml", "--release", release)

    assert "noisewise fit" in _run("synthesize", release).stderr
    assert "noisewise synthesize" in _run("analyze", release).stderr


def test_wrong_settings_name_the_option(finished):
    result = _run("fit", finished[0], "--method", "magic")

    assert result.exit_code == 3
    assert "--method is 'magic'" in result.stderr


def test_too_many_datasets_are_refused(finished):
    result = _run("synthesize", finished[0], "--datasets", 10**6)

    assert result.exit_code == 6
    assert "need as many posterior draws" in result.stderr


def test_stopping_with_ctrl_c_leaves_no_mess(tmp_path):
    folder = tmp_path / "demo"
    process = subprocess.Popen(
        [sys.executable, "-m", "noisewise", "demo", "--release", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not (folder / "manifest.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Stopped" in errors
    assert b"Traceback" not in errors
    assert [path.name for path in folder.rglob("*.partial")] == []
    assert damage(Release(folder)) == []


def test_the_program_itself_starts_and_helps():
    done = subprocess.run([sys.executable, "-m", "noisewise", "--help"], capture_output=True, text=True, check=False)

    assert done.returncode == 0
    for word in ("measure", "fit", "synthesize", "analyze", "verify", "run", "demo", "Exit codes"):
        assert word in done.stdout
