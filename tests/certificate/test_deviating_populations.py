"""Populations known in full: their joint tables, the association that stress adds, and their truth."""

from itertools import product

import numpy as np
import pytest

from noisewise.analysis import Custom, glm, means, proportions
from noisewise.certificate.populations import LOG_ODDS, Known, Stress, association
from noisewise.certificate.truth import in_proportion, truth_of
from noisewise.errors import ModelError
from noisewise.model.joint import (
    add_at_home,
    clique_tables,
    joint_probabilities,
    normalised,
    probabilities_at_home,
)
from noisewise.model.maxent import MaxEnt
from noisewise.schema import Boolean, Categorical, Numeric, Schema
from oracles.enumeration import Enumeration

SIZES = (2, 3, 2, 2, 3)
GRAPHS = (
    ((0, 1), (1, 2), (2, 3), (3, 4)),
    ((0, 1), (2, 3)),
    ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4)),
    ((0, 1, 2), (2, 4)),
)


def known(marginals, seed=0, spread=0.8):
    model = MaxEnt.of(SIZES, marginals)
    return model, Known.of(model, np.random.default_rng(seed).normal(0, spread, model.parameters))


def whole(population):
    """The full table, from a product over every row: slow and obvious."""
    table = np.zeros(SIZES)
    tree = population.tree
    for row in product(*map(range, SIZES)):
        logs = [
            log[tuple(row[c] for c in clique)]
            for log, clique in zip(population.log_conditionals, tree.cliques, strict=True)
        ]
        table[row] = np.exp(sum(logs))
    return table


@pytest.mark.parametrize("marginals", GRAPHS)
@pytest.mark.parametrize("columns", [(0,), (4, 0), (3, 1), (0, 2, 4), (4, 3, 2, 1, 0)])
def test_joint_tables_are_those_of_the_full_table(marginals, columns):
    model, population = known(marginals)
    theta = np.random.default_rng(0).normal(0, 0.8, model.parameters)
    enumerated = Enumeration(SIZES, marginals).probabilities(theta).reshape(SIZES)

    away = tuple(c for c in range(5) if c not in columns)
    kept = sorted(columns)
    expected = np.transpose(enumerated.sum(away), [kept.index(c) for c in columns])
    found = joint_probabilities(population.tree, population.log_conditionals, columns)

    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("marginals", GRAPHS)
def test_normalising_potentials_gives_back_a_distribution(marginals):
    model, population = known(marginals)
    potentials = [np.zeros(model.tree.shape(clique)) for clique in model.tree.cliques]
    for clique, table in zip(model.tree.cliques, population.log_conditionals, strict=True):
        add_at_home(model.tree, potentials, clique, table + 3.0)  # a constant factor drops out

    again = Known(tree=model.tree, log_conditionals=normalised(model.tree, potentials))

    np.testing.assert_allclose(whole(again), whole(population), atol=1e-12)
    tables = clique_tables(again.tree, again.log_conditionals)
    first = model.tree.cliques[0]
    np.testing.assert_allclose(
        probabilities_at_home(again.tree, tables, first),
        whole(population).sum(tuple(c for c in range(5) if c not in first)),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("marginals", "gaps"),
    [
        (((0, 1), (1, 2), (2, 3), (3, 4)), ((0, 2),)),
        (((0, 1), (1, 2), (2, 3), (3, 4)), ((0, 4), (1, 3))),
        (((0, 1), (2, 3)), ((0, 3),)),
        (((0, 1), (1, 2), (0, 2), (3, 4)), ((0, 1, 2),)),
    ],
)
def test_stress_leaves_the_measured_marginals_and_adds_the_association(marginals, gaps):
    model, own = known(marginals)
    theta = np.random.default_rng(0).normal(0, 0.8, model.parameters)
    stressed = Stress(model=model, gaps=gaps).population(theta)
    before, after = whole(own), whole(stressed)

    for marginal in marginals:
        away = tuple(c for c in range(5) if c not in marginal)
        np.testing.assert_allclose(after.sum(away), before.sum(away), atol=1e-7)
    for gap in gaps:
        assert _log_odds(after, gap) - _log_odds(before, gap) == pytest.approx(LOG_ODDS, abs=1e-9)


def test_the_twin_that_does_not_fit_the_marginals_again_moves_them():
    model, own = known(GRAPHS[0])
    tree = Stress(model=model, gaps=((0, 2),)).tree
    potentials = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for clique, table in zip(model.tree.cliques, own.log_conditionals, strict=True):
        add_at_home(tree, potentials, clique, table)
    add_at_home(tree, potentials, (0, 2), association([2, 2]))
    moved = Known(tree=tree, log_conditionals=normalised(tree, potentials))

    assert np.abs(whole(moved).sum((2, 3, 4)) - whole(own).sum((2, 3, 4))).max() > 1e-2


def _log_odds(table, columns):
    """The interaction between the ends of some columns, all others at their first level."""
    total = 0.0
    for ends in product((0, 1), repeat=len(columns)):
        row = [0] * 5
        for column, end in zip(columns, ends, strict=True):
            row[column] = (SIZES[column] - 1) * end
        total += (-1) ** (len(columns) - sum(ends)) * np.log(table[tuple(row)])
    return total


def test_a_gap_that_makes_the_model_too_large_is_refused():
    sizes = (200, 200, 200)
    model = MaxEnt.of(sizes, [(0, 1), (1, 2)])

    with pytest.raises(ModelError, match="too many"):
        _ = Stress(model=model, gaps=((0, 2),)).tree


SCHEMA = Schema(
    name="known",
    column=(
        Boolean(name="y"),
        Categorical(name="a", levels=("low", "middle", "high")),
        Numeric(name="b", edges=(0, 10, 20), integer=True),
        Boolean(name="c"),
        Categorical(name="d", levels=("p", "q", "r")),
    ),
)


def test_the_truth_is_that_of_the_population():
    _, population = known(GRAPHS[3])
    table = whole(population)

    odds = truth_of(population, SCHEMA, glm("y ~ a", family="binomial"), 1_000, 0)
    shares = truth_of(population, SCHEMA, proportions("d"), 1_000, 0)
    mean = truth_of(population, SCHEMA, means("b"), 1_000, 0)

    by_a = table.sum((2, 3, 4))
    exact = np.log(by_a[1] / by_a[0])
    # Rounding to a table of a million rows moves a count by less than one; these counts are above 10,000.
    assert (by_a > 0.01).all()
    assert list(odds.values.values()) == pytest.approx([exact[0], exact[1] - exact[0], exact[2] - exact[0]], abs=4e-4)
    assert list(shares.values.values()) == pytest.approx(table.sum((0, 1, 2, 3)), abs=2e-6)
    level = np.asarray(SCHEMA.column("b").declared_values(), float)
    assert next(iter(mean.values.values())) == pytest.approx(table.sum((0, 1, 3, 4)) @ level, abs=2e-5)
    assert "exact distribution" in odds.how


def test_an_analysis_whose_columns_are_unknown_is_run_on_a_large_draw():
    _, population = known(GRAPHS[3])

    estimator = Custom(lambda frame: (frame["y"].mean(), 0.25 / len(frame)), terms=("share",))
    found = truth_of(population, SCHEMA, estimator, 1_000, 0)

    expected = whole(population).sum((1, 2, 3, 4))[1]
    # Five standard errors of a share among a million rows.
    assert next(iter(found.values.values())) == pytest.approx(expected, abs=5 * 0.5e-3)
    assert "large draw" in found.how


def test_whole_numbers_in_proportion():
    shares = np.random.default_rng(0).dirichlet(np.full(50, 0.2))

    counts = in_proportion(shares, 1_000)

    assert counts.sum() == 1_000
    assert np.abs(counts - 1_000 * shares).max() < 1
