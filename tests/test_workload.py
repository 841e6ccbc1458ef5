"""What is measured: canonical order, refusals, and the marginals an analysis needs."""

import pytest

from noisewise.errors import SchemaError, WorkloadError
from noisewise.schema import Boolean, Categorical, Schema
from noisewise.workload import Workload, marginals_for

SCHEMA = Schema(column=tuple(Boolean(name=name) for name in "abcd"))


def test_the_order_of_writing_does_not_matter():
    first = Workload.of(SCHEMA, [["b", "a"], ["c", "d"]])
    second = Workload.of(SCHEMA, [["d", "c"], ["a", "b"]])

    assert first == second
    assert first.marginals == (("a", "b"), ("c", "d"))
    assert first.cells(SCHEMA) == 8


def test_an_analysis_adds_what_is_not_there_yet():
    workload = Workload.of(SCHEMA, [["a", "b", "c"]], ["a ~ b + d"])

    assert workload.marginals == (("a", "b", "c"), ("a", "d"), ("b", "d"))


def test_overlapping_marginals_are_fine():
    assert len(Workload.of(SCHEMA, [["a", "b"], ["b", "c"], ["a", "c"]]).marginals) == 3


@pytest.mark.parametrize(
    ("marginals", "words"),
    [
        ([["a", "b"], ["b", "a"]], "listed twice"),
        ([["a", "b"], ["a"]], "is part of"),
        ([["a", "a"]], "names a column twice"),
        ([[]], "names no column"),
        (["ab"], "Write it as a list"),
        ([], "The workload is empty"),
    ],
)
def test_marginals_that_make_no_sense_are_refused(marginals, words):
    with pytest.raises(WorkloadError, match=words):
        Workload.of(SCHEMA, marginals)


def test_an_unknown_column_is_named():
    with pytest.raises(SchemaError, match="Column 'e' is not in the schema"):
        Workload.of(SCHEMA, [["a", "e"]])
    with pytest.raises(SchemaError, match="Column 'e' is not in the schema"):
        Workload.of(SCHEMA, analyses=["a ~ e"])


def test_a_marginal_of_a_hundred_million_cells_is_refused():
    levels = tuple(str(i) for i in range(100))
    wide = Schema(column=tuple(Categorical(name=name, levels=levels) for name in "abcd"))

    with pytest.raises(WorkloadError, match="100,000,000 cells"):
        Workload.of(wide, [["a", "b", "c", "d"]])


@pytest.mark.parametrize(
    ("formula", "needed"),
    [
        ("y ~ a", {("a", "y")}),
        ("y ~ 1", {("y",)}),
        ("y ~ a + b", {("a", "b"), ("a", "y"), ("b", "y")}),
        ("y ~ 0 + a", {("a", "y")}),
        ("y ~ a:b", {("a", "b"), ("a", "y"), ("b", "y"), ("a", "b", "y")}),
        ("np.log(y) ~ I(a**2) + C(b)", {("a", "b"), ("a", "y"), ("b", "y")}),
    ],
)
def test_what_a_formula_needs(formula, needed):
    assert {tuple(sorted(marginal)) for marginal in marginals_for(formula)} == needed


def test_an_unreadable_formula_is_refused():
    with pytest.raises(WorkloadError, match="Cannot read the formula"):
        marginals_for("y ~ (a")
