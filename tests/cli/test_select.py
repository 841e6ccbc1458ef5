"""Selection as people ask for it: in a study file, by an option, and what the ledger and `verify` say of it."""

import pytest
from typer.testing import CliRunner

from noisewise.artifacts import Release
from noisewise.cli import app
from noisewise.errors import StudyError
from noisewise.study import Study, measure_study
from small_study import SMALL_STUDY, small_study

THREE = """
[[column]]
name = "z"
type = "boolean"
"""
SELECTING = SMALL_STUDY.replace(
    "[synthesis]", '[workload]\nmarginals = [["x"]]\nselect = { method = "mst", share = 0.3 }\n\n[synthesis]'
)


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def written(folder, text):
    """The small study with a third column."""
    small_study(folder, text)
    lines = (folder / "table.csv").read_text().splitlines()
    (folder / "table.csv").write_text(
        "\n".join([lines[0] + ",z", *(f"{line},{'true' if i % 3 else 'false'}" for i, line in enumerate(lines[1:]))])
    )
    with (folder / "table.schema.toml").open("a") as file:
        file.write(THREE)
    return folder / "study.toml"


def test_a_study_says_how_to_choose(tmp_path):
    study = Study.load(written(tmp_path, SELECTING))
    release = Release(tmp_path / "release")
    noisy = measure_study(study, release)

    assert noisy.marginals[:4] == (("x",), ("y",), ("z",), ("x",))
    assert len([m for m in noisy.marginals if len(m) == 2]) == 2
    assert [step.share for step in release.manifest().privacy.steps] == [0.3, 0.7]


def test_an_option_says_how_to_choose_and_everybody_is_told(tmp_path):
    study = written(tmp_path, SMALL_STUDY)
    result = run("measure", study, "--select", "mst", "--select-share", "0.25")
    ledger = run("ledger", "show", tmp_path / "noisewise.ledger")
    verified = run("verify", tmp_path / "study-release")

    assert result.exit_code == 0, result.output
    assert "25% of it for selection by mst" in " ".join(ledger.stdout.split())
    assert "25%" in verified.stdout
    assert "exponential" in verified.stdout


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ('{ method = "mts" }', "Did you mean 'mst'"),
        ('{ method = "mst", rounds = 3 }', "no setting 'rounds'"),
        ('{ method = "mst", share = 2.0 }', "between 0 and 1"),
    ],
)
def test_a_selection_that_makes_no_sense_is_told_before_anything_is_spent(tmp_path, select, words):
    study = written(tmp_path, SELECTING.replace('{ method = "mst", share = 0.3 }', select))
    result = run("measure", study)

    assert result.exit_code in (3, 4)
    assert words in result.stderr
    assert not (tmp_path / "noisewise.ledger").exists()


def test_weights_in_a_study(tmp_path):
    text = SMALL_STUDY.replace(
        "[synthesis]", '[workload]\nmarginals = [["x", "y"], ["z"]]\nweights = [4, 1]\n\n[synthesis]'
    )
    noisy = measure_study(Study.load(written(tmp_path, text)), Release(tmp_path / "release"))

    assert noisy.measurements[1].stddev == pytest.approx(2 * noisy.measurements[0].stddev, rel=1e-6)
    with pytest.raises(StudyError):
        Study.load(written(tmp_path, text.replace("weights = [4, 1]", 'weights = ["a"]')))
