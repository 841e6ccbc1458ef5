"""What a release can support: every relation is judged, said in words, marked, and refused when strict."""

import pytest

from noisewise.analysis import (
    Bootstrap,
    analyze,
    check_support,
    contingency,
    correlations,
    cox,
    independence_test,
    likelihood_ratio_test,
    logit,
    marginals_for,
    means,
    ols,
)
from noisewise.analysis.support import Standing, relation_of
from noisewise.errors import AnalysisError
from noisewise.synthesis import synthesize
from released import MARGINALS, posterior

MEASURED = (("y", "a"), ("a", "b"), ("y", "b"), ("b", "c"), ("d", "e"))


@pytest.fixture(scope="module")
def datasets():
    return synthesize(posterior(), 30, seed=1)


@pytest.mark.parametrize(
    ("columns", "standing", "through"),
    [
        (("a", "y"), Standing.MEASURED, ()),
        (("a", "b", "y"), Standing.PAIRWISE, ()),
        (("a", "c"), Standing.CONNECTED, ("b",)),
        (("c", "y"), Standing.CONNECTED, ("b",)),
        (("a", "b", "c"), Standing.CONNECTED, ()),
        (("a", "d"), Standing.UNCONNECTED, ()),
        (("a", "c", "d"), Standing.UNCONNECTED, ()),
        (("a", "z"), Standing.ABSENT, ()),
    ],
)
def test_every_standing(columns, standing, through):
    relation = relation_of(columns, MEASURED)

    assert (relation.standing, relation.through) == (standing, through)
    assert relation.supported == (standing is Standing.MEASURED)
    assert " × ".join(columns) in relation.sentence


def test_the_sentence_says_what_the_interval_is_about():
    sentence = relation_of(("a", "c"), MEASURED).sentence

    assert "an interval for a:c describes the model's assumption of conditional independence given b" in sentence
    assert "not the data" in sentence


def test_the_check_and_the_plan_read_the_same_list():
    formula = "y ~ a * b + c"
    support = check_support(formula, MEASURED)

    assert [relation.columns for relation in support.relations] == marginals_for(formula)
    assert check_support(formula, marginals_for(formula)).supported
    assert not support.supported
    assert "NOT fully supported" in str(support)
    assert "Measured together: a × b, a × y, b × c, b × y. Not so:" in str(support)


def test_a_larger_marginal_supports_all_its_parts():
    assert check_support("y ~ a * b", [("a", "b", "c", "y")]).supported


def test_many_relations_are_counted_instead_of_listed():
    names = [f"x{i}" for i in range(14)]
    support = check_support(f"y ~ {' + '.join(names)}", [("y", name) for name in names])

    assert "14 of 105 sets of columns" in support.sentences[0]
    assert len(support.sentences) == 1 + 91


def test_the_verdict_stands_before_the_numbers_and_the_terms_are_marked(datasets):
    result = analyze(datasets, logit("income ~ owner + race"))

    text = str(result.summary())
    assert result.unsupported == ("race[T.Black]", "race[T.Other]")
    assert text.index("NOT fully supported") < text.index("race[T.Black]  ")
    assert text.index("income × race: connected") < text.index("estimate")
    marked = [line.split()[0] for line in text.splitlines() if line.rstrip().endswith(("†", "†!", "†‡", "†‡!"))]
    assert marked == ["race[T.Black]", "race[T.Other]"]
    assert result.summary_frame()["supported"].tolist() == [True, True, False, False]
    assert "NOT fully supported" in result.summary().as_html()
    assert "NOT fully supported" in result.summary().as_latex()
    assert any("NOT fully supported" in note for note in result.notes)


def test_what_is_supported_says_so(datasets):
    text = str(analyze(datasets, logit("income ~ owner"), strict=True).summary())

    assert "Supported by the release. Measured together: income × owner." in text


def test_an_unknown_support_says_so_and_strict_needs_it(datasets):
    frames = [table.to_pandas() for table in datasets[:5]]

    assert "Not checked" in str(analyze(frames, means("hours-per-week"), original_rows=300).summary())
    with pytest.raises(AnalysisError, match="strict needs to know"):
        analyze(frames, means("hours-per-week"), original_rows=300, strict=True)
    given = analyze(frames, means("hours-per-week"), original_rows=300, marginals=MARGINALS, strict=True)
    assert given.support.supported


@pytest.mark.parametrize(
    ("estimator", "gap"),
    [
        (logit("income ~ race"), "income × race"),
        (logit("income ~ owner", weights="hours-per-week"), "hours-per-week × owner"),
        (cox("`hours-per-week` ~ 1 + owner", event="income"), "hours-per-week × owner"),
        (means("hours-per-week", by="owner"), "hours-per-week × owner"),
        (contingency("race", "income"), "income × race"),
        (correlations("age", "hours-per-week"), "age × hours-per-week"),
        (ols("age ~ scale(`hours-per-week`)"), "age × hours-per-week"),
        (Bootstrap(lambda frame: frame["age"].mean(), formula="age ~ race"), "age × race"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_strict_refuses_with_the_gap_and_the_next_step(datasets, estimator, gap):
    with pytest.raises(AnalysisError, match="strict is on") as refused:
        analyze(datasets, estimator, strict=True)

    assert gap in str(refused.value)
    assert "ask the data holder" in str(refused.value)


def test_weights_and_events_count_as_columns_of_every_term(datasets):
    weighted = logit("income ~ owner", weights="hours-per-week").fit(datasets)
    hazards = cox("`hours-per-week` ~ 1 + owner", event="income").fit(datasets)

    assert weighted.variables["owner"] == ("income", "hours-per-week", "owner")
    assert hazards.variables["owner"] == ("hours-per-week", "income", "owner")


def test_joint_tests_carry_the_verdict_too(datasets):
    independence = independence_test(datasets, "race", "income")
    ratio = likelihood_ratio_test(datasets, logit("income ~ owner + race"), logit("income ~ owner"))
    wald = analyze(datasets, logit("income ~ owner + race")).wald_test("race")

    assert "NOT fully supported" in str(independence)
    assert "income × race" in str(ratio)
    assert "race[T.Black], race[T.Other]: describes an assumption" in str(wald)
    with pytest.raises(AnalysisError, match="strict is on"):
        independence_test(datasets, "race", "income", strict=True)
    with pytest.raises(AnalysisError, match="strict is on"):
        likelihood_ratio_test(datasets, logit("income ~ owner + race"), logit("income ~ owner"), strict=True)


def test_warnings_of_the_release_come_first():
    doubtful = synthesize(posterior(reasons=("It did not converge.",)), 20, seed=1, allow_untrusted=True)

    result = analyze(doubtful, logit("income ~ owner"))

    assert result.notes[0] == "Warning: It did not converge."
    assert "Warning: It did not converge." in str(result.wald_test("owner"))
    assert "Warning: It did not converge." in str(independence_test(doubtful, "owner", "income"))
    assert "It did not converge." in str(analyze(doubtful[:10], logit("income ~ owner")).summary())
