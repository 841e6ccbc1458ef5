"""The built-in example goes through every stage."""

from noisewise.artifacts import damage
from noisewise.demo import run_demo


def test_the_demo_leaves_a_release_that_adds_up(tmp_path):
    release, comparison = run_demo(tmp_path / "demo")

    assert damage(release) == []
    assert set(comparison.pooled) == {"x1", "x2"}
    assert len(comparison.single["x1"]) == 100
    assert (release.folder / "report.html").is_file()
