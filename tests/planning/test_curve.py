"""The curve of a plan: which ε an interval of a given length needs."""

import math
import re

import pytest
from typer.testing import CliRunner

from noisewise.cli import app
from noisewise.planning.curve import needed, needed_epsilon
from noisewise.planning.expected import ExpectedAnalysis, ExpectedTerm
from small_study import SMALL_STUDY, small_study

EPSILONS = (0.1, 0.3, 1.0, 3.0)


def test_between_budgets_the_power_law_is_recovered():
    """A length that falls as ε to the power -0.8 is inverted exactly, whichever length is wanted."""
    lengths = [2.0 * epsilon**-0.8 for epsilon in EPSILONS]

    for wanted in (1.0, 2.0, 5.0):
        assert needed_epsilon(EPSILONS, lengths, wanted)[0] == pytest.approx((2.0 / wanted) ** (1 / 0.8))


def test_outside_the_budgets_only_a_bound_is_given():
    lengths = (8.0, 4.0, 2.0, 1.0)

    assert needed_epsilon(EPSILONS, lengths, 9.0) == (0.1, "0.1 or less")
    assert needed_epsilon(EPSILONS, lengths, 0.5) == (None, "more than 3")
    assert needed_epsilon(EPSILONS, (None,) * 4, 0.5)[0] is None
    assert needed_epsilon(EPSILONS, (None, 4.0, 2.0, 1.0), 4.0)[0] == 0.3


def test_a_longer_interval_at_a_larger_budget_is_chance():
    epsilon, _ = needed_epsilon(EPSILONS, (8.0, 2.0, 2.5, 1.0), 2.0)

    assert epsilon == pytest.approx(0.3)


def test_no_budget_makes_an_interval_shorter_than_without_privacy():
    term = ExpectedTerm(name="a", estimate=1.0, without_privacy=0.5, lengths=(8.0, 4.0, 2.0, 0.6))
    analysis = ExpectedAnalysis(formula="y ~ a", terms=(term,), failures=("",) * 4)

    assert needed(analysis, EPSILONS, 0.4) == [("a", "no ε is enough: without privacy its length is 0.5")]
    assert needed(analysis, EPSILONS, 2.0) == [("a", "about 1")]


def test_the_command_shows_the_curve_and_the_page_draws_it(tmp_path):
    small_study(tmp_path, SMALL_STUDY.replace('source = "table.csv"', 'source = "table.csv"\nrows = 1000'))
    words = ["plan", str(tmp_path / "study.toml"), "--like", "uniform", "--certify", "--length", "1"]
    words += ["--epsilon", "0.3", "--epsilon", "3", "--datasets", "60", "--html", str(tmp_path / "plan.html")]

    done = CliRunner().invoke(app, words)
    refused = CliRunner().invoke(app, ["plan", str(tmp_path / "study.toml"), "--certify"])

    assert done.exit_code == 0, done.output
    times = [float(x.replace(",", "")) for x in re.findall(r"█ ([\d.,]+) ×", done.output)]
    assert len(times) == 3
    assert times[0] > times[-1] > 0.8
    assert "For a 95 % interval of length 1 it takes an ε of" in done.output
    page = (tmp_path / "plan.html").read_text("utf-8")
    assert page.count("<polyline") == 1
    assert math.isclose(page.count('class="curve c0"'), 4)
    assert refused.exit_code == 3
    assert "--like uniform" in refused.output
