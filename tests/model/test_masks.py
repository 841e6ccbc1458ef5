"""Combinations that cannot occur, against the list of all rows with those struck off."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from model.test_junction_tree import graphs
from noisewise.errors import ModelError
from noisewise.model.maxent import MaxEnt
from noisewise.model.sampling import draw_rows
from noisewise.posterior.problem import canonical_cells
from oracles.enumeration import Enumeration

# The rounding of test_maxent.py: sums of a few hundred terms of order one.
CLOSE = {"rtol": 1e-11, "atol": 1e-12}

# Sizes, marginals, and boxes of levels that no row has.
RULED = {
    "a child with a spouse": ((3, 2, 2), ((0, 1), (1, 2)), (((0, (0,)), (1, (1,))),)),
    "the reference cell is impossible": ((2, 2), ((0, 1),), (((0, (0,)), (1, (0,))),)),
    "no marginal holds the rule": ((3, 2, 2), ((0, 2), (1, 2)), (((0, (1, 2)), (1, (0,))),)),
    "no marginal at all": ((2, 3), (), (((0, (0,)), (1, (1, 2))),)),
    "a region follows from a city": (
        (4, 2, 2),
        ((0, 2), (1, 2)),
        (((0, (0, 1)), (1, (1,))), ((0, (2, 3)), (1, (0,)))),
    ),
    "both measured together": ((4, 2, 2), ((0, 1), (1, 2)), (((0, (0, 1)), (1, (1,))), ((0, (2, 3)), (1, (0,))))),
    "one thing said by three columns": (
        (3, 2, 3, 2),
        ((0, 1), (0, 2), (2, 3)),
        (
            ((0, (0,)), (1, (0,))),
            ((0, (1, 2)), (1, (1,))),
            ((0, (0,)), (2, (0, 1))),
            ((0, (1, 2)), (2, (2,))),
            ((2, (2,)), (3, (0,))),
            ((2, (0, 1)), (3, (1,))),
        ),
    ),
    "three columns": ((2, 3, 2), ((0, 1), (1, 2)), (((0, (1,)), (1, (0, 2)), (2, (1,))),)),
    "a level that cannot be had": ((2, 3, 2), ((0, 1), (1, 2)), (((0, (0,)), (1, (2,))), ((1, (2,)), (2, (0, 1))))),
    "what one rule leaves another takes": (
        (2, 2, 2, 2),
        ((0, 1), (1, 2), (2, 3)),
        (((1, (0,)), (2, (0,))), ((1, (0,)), (2, (1,)), (3, (0, 1))), ((0, (0,)), (1, (1,)))),
    ),
}


def block_features(model):
    """(columns, levels) of the model's parameters, in order."""
    found = []
    for block in model.blocks:
        cells = [tuple(int(k) for k in cell) for cell in np.ndindex(block.source.shape)]
        own = {int(block.source[cell]): (block.columns, cell) for cell in cells}
        found += [own[i] for i in range(block.stop - block.start)]
    return found


def box_rows(sizes, boxes):
    rows = product(*map(range, sizes))
    return [row for row in rows if any(all(row[c] in ks for c, ks in box) for box in boxes)]


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("shape", RULED)
def test_the_tree_agrees_with_the_list_of_possible_rows(shape, scale):
    model, truth = MaxEnt.of(*RULED[shape]), Enumeration(*RULED[shape])
    theta = np.random.default_rng(3).normal(0, scale, model.parameters)

    assert block_features(model) == truth.parameters
    np.testing.assert_allclose(model.log_conditionals(theta)[1], truth.log_partition(theta), **CLOSE)
    if model.marginals:
        np.testing.assert_allclose(model.probabilities(theta), truth.cell_probabilities(theta), **CLOSE)
        np.testing.assert_allclose(model.covariance(theta), truth.covariance(theta), **CLOSE)


@pytest.mark.parametrize("shape", RULED)
def test_the_comparison_notices_rules_that_are_not_imposed(shape):
    sizes, marginals, boxes = RULED[shape]
    model, truth = MaxEnt.of(sizes, [*marginals, tuple(c for c, _ in boxes[0])]), Enumeration(sizes, marginals, boxes)
    free = np.prod(sizes)
    assert not np.isclose(
        model.log_conditionals(np.zeros(model.parameters))[1], truth.log_partition(0 * truth.design[0])
    )
    assert np.isclose(model.log_conditionals(np.zeros(model.parameters))[1], np.log(free))


@st.composite
def ruled_graphs(draw):
    sizes, marginals = draw(graphs(columns=4, largest=3))
    boxes = []
    for _ in range(draw(st.integers(1, 3))):
        columns = sorted(draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3)))
        levels = [draw(st.sets(st.integers(0, sizes[c] - 1), min_size=1)) for c in columns]
        boxes.append(tuple((c, tuple(sorted(own))) for c, own in zip(columns, levels, strict=True)))
    return sizes, marginals, tuple(boxes)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(ruled_graphs(), st.integers(0, 2**32 - 1))
def test_they_agree_on_any_graph_with_any_rules(ruled, seed):
    truth = Enumeration(*ruled)
    assume(truth.rows)
    model = MaxEnt.of(*ruled)
    features = block_features(model)
    design = truth._holds(features)
    theta = np.random.default_rng(seed).normal(0, 2, model.parameters)
    energy = design @ theta
    p = np.exp(energy - energy.max()) / np.exp(energy - energy.max()).sum()

    # Nothing that can be expressed is lost by leaving parameters out, and none that is left is void.
    wide = np.column_stack([np.ones(len(truth.rows)), truth._holds(truth.interactions)])
    narrow = np.column_stack([np.ones(len(truth.rows)), design])
    assert np.linalg.matrix_rank(narrow) == np.linalg.matrix_rank(wide)
    assert design.any(0).all()
    if model.marginals:
        np.testing.assert_allclose(model.probabilities(theta), truth.cells @ p, **CLOSE)
    for clique, table in zip(model.tree.cliques, model.clique_probabilities(theta), strict=True):
        reached = {tuple(row[c] for c in clique) for row in truth.rows}
        never = np.array([cell not in reached for cell in np.ndindex(table.shape)]).reshape(table.shape)
        assert (table[never] == 0).all()
        assert (table[~never] > 0).all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ruled_graphs(), st.integers(0, 2**32 - 1))
def test_no_row_that_is_drawn_breaks_a_rule(ruled, seed):
    assume(Enumeration(*ruled).rows)
    model, stream = MaxEnt.of(*ruled), np.random.default_rng(seed)
    codes = draw_rows(model, stream.normal(0, 3, model.parameters), 500, stream)
    assert not {tuple(int(k) for k in row) for row in codes} & set(box_rows(ruled[0], ruled[2]))


def test_rows_drawn_without_the_rules_break_them():
    sizes, marginals, boxes = RULED["a child with a spouse"]
    model = MaxEnt.of(sizes, marginals)
    codes = draw_rows(model, np.zeros(model.parameters), 500, np.random.default_rng(0))
    assert {tuple(int(k) for k in row) for row in codes} & set(box_rows(sizes, boxes))


@pytest.mark.parametrize("shape", ["a region follows from a city", "what one rule leaves another takes"])
def test_all_derivatives_are_finite_under_jax(shape):
    model = MaxEnt.of(*RULED[shape])
    theta = np.random.default_rng(5).normal(0, 1, model.parameters)

    def summed(t):
        return model.covariance_root(t, jax.vmap, jnp).sum() + model.log_conditionals(t, jnp)[1]

    with jax.enable_x64(True):
        value, slope, curve = jax.jit(lambda t: (summed(t), jax.grad(summed)(t), jax.hessian(summed)(t)))(theta)
        root = np.asarray(jax.jit(lambda t: model.covariance_root(t, jax.vmap, jnp))(theta))
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
    assert np.isfinite(curve).all()
    if model.marginals:
        np.testing.assert_allclose(root @ root.T, Enumeration(*RULED[shape]).covariance(theta), **CLOSE)


def test_rules_that_leave_no_row_are_refused():
    boxes = (((0, (0,)), (1, (0, 1))), ((0, (1,)), (1, (0, 1))))
    with pytest.raises(ModelError, match="leave no possible row"):
        _ = MaxEnt.of((2, 2), ((0, 1),), boxes).masks


@pytest.mark.parametrize("shape", [name for name, ruled in RULED.items() if ruled[1]])
def test_the_canonical_cells_are_those_of_the_parameters(shape):
    model = MaxEnt.of(*RULED[shape])
    assert canonical_cells(model).sum() == model.parameters
