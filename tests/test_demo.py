"""The built-in example goes through every stage, and the README shows what it prints."""

import re

from typer.testing import CliRunner

from conftest import REPOSITORY
from noisewise.artifacts import damage
from noisewise.cli import app
from noisewise.demo import run_demo


def test_the_demo_leaves_a_release_that_adds_up(tmp_path):
    release, comparison = run_demo(tmp_path / "demo")

    assert damage(release) == []
    assert set(comparison.pooled) == {"x1", "x2"}
    assert len(comparison.single["x1"]) == 100
    assert (release.folder / "report.html").is_file()


def _skeleton(text):
    """The words of an output without what the privacy noise changes: numbers, verdicts, the picture."""
    words = re.sub(r"[^a-zA-Z%,.:()]+", " ", re.sub(r"-?\d[\d,.]*|holds|misses|[─│●]", " ", text))
    return words.split()


def test_the_readme_shows_what_the_demo_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```", readme, re.DOTALL)

    printed = CliRunner().invoke(app, ["demo"], env={"COLUMNS": "110"}).stdout

    assert shown is not None
    assert _skeleton(shown[1]) == _skeleton(printed)
