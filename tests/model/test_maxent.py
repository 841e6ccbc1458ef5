"""The tree's recursions against full enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.shapes import SHAPES
from model.test_junction_tree import graphs
from noisewise.errors import ModelError
from noisewise.model.maxent import MaxEnt
from oracles.enumeration import Enumeration

# Sums of a few hundred terms of order one in double precision: rounding stays below 1e-13; |θ| up to 30 in the
# extreme cases costs two more digits.
CLOSE = {"rtol": 1e-11, "atol": 1e-12}


def check(sizes, marginals, theta_of):
    model, truth = MaxEnt.of(sizes, marginals), Enumeration(tuple(sizes), tuple(marginals))
    assert model.parameters == len(truth.parameters)
    theta = theta_of(model.parameters)
    _, log_partition = model.log_conditionals(theta)

    np.testing.assert_allclose(log_partition, truth.log_partition(theta), **CLOSE)
    np.testing.assert_allclose(model.probabilities(theta), truth.cell_probabilities(theta), **CLOSE)
    np.testing.assert_allclose(model.covariance(theta), truth.covariance(theta), **CLOSE)
    assert model.cells == len(truth.cells)


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_log_partition_mean_and_covariance_are_those_of_enumeration(shape, scale):
    random = np.random.default_rng(3)
    check(*SHAPES[shape], lambda size: random.normal(0, scale, size))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(graphs(columns=5, largest=3), st.integers(0, 2**32 - 1))
def test_they_are_on_any_graph(graph, seed):
    random = np.random.default_rng(seed)
    check(*graph, lambda size: random.normal(0, 2, size))


def test_the_comparison_notices_a_wrong_parametrisation():
    sizes, marginals = SHAPES["cycle"]
    theta = np.random.default_rng(0).normal(0, 1, MaxEnt.of(sizes, marginals).parameters)
    wrong = theta[::-1]
    truth = Enumeration(sizes, marginals)
    assert not np.allclose(MaxEnt.of(sizes, marginals).probabilities(wrong), truth.cell_probabilities(theta), atol=1e-3)


def test_zero_is_the_uniform_distribution():
    model = MaxEnt.of((3, 4), ((0, 1),))
    np.testing.assert_allclose(model.probabilities(np.zeros(11)), np.full(12, 1 / 12), rtol=1e-15)


def test_parameters_are_log_odds_ratios_against_the_first_levels():
    model = MaxEnt.of((2, 3), ((0, 1),))
    theta = np.array([0.3, -0.2, 1.1, 0.5, -2.0])
    log_p = np.log(model.probabilities(theta)).reshape(2, 3)
    expected = [
        log_p[1, 0] - log_p[0, 0],
        log_p[0, 1] - log_p[0, 0],
        log_p[0, 2] - log_p[0, 0],
        log_p[1, 1] - log_p[1, 0] - log_p[0, 1] + log_p[0, 0],
        log_p[1, 2] - log_p[1, 0] - log_p[0, 2] + log_p[0, 0],
    ]
    np.testing.assert_allclose(expected, theta, rtol=1e-12)


@pytest.mark.parametrize("shape", ["triangle", "mixed ways"])
def test_the_gradient_of_the_log_partition_is_the_mean_of_the_features(shape):
    sizes, marginals = SHAPES[shape]
    model, truth = MaxEnt.of(sizes, marginals), Enumeration(sizes, marginals)
    theta = np.random.default_rng(5).normal(0, 1, model.parameters)
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(lambda t: model.log_conditionals(t, jnp)[1]))(theta)
    np.testing.assert_allclose(gradient, truth.probabilities(theta) @ truth.design, **CLOSE)


@pytest.mark.parametrize("shape", ["triangle", "mixed ways"])
def test_numpy_and_jax_agree(shape):
    model = MaxEnt.of(*SHAPES[shape])
    theta = np.random.default_rng(5).normal(0, 1, model.parameters)
    with jax.enable_x64(True):
        mean = np.asarray(jax.jit(lambda t: model.probabilities(t, jnp))(theta))
        root = np.asarray(jax.jit(lambda t: model.covariance_root(t, jax.vmap, jnp))(theta))
    np.testing.assert_allclose(mean, model.probabilities(theta), **CLOSE)
    np.testing.assert_allclose(root @ root.T, model.covariance(theta), **CLOSE)


def test_extreme_parameters_give_finite_numbers_and_derivatives():
    """Cells of probability e^-2000 are zero in double precision; nothing may turn into NaN because of them."""
    model = MaxEnt.of((2, 3, 2), ((0, 1), (1, 2)))
    theta = np.zeros(model.parameters)
    theta[0], theta[2], theta[-1] = -2000.0, 1500.0, -900.0

    def entries(t):
        return model.covariance_root(t, jax.vmap, jnp)

    with jax.enable_x64(True):
        root, slope, curve = jax.jit(
            lambda t: (entries(t), jax.grad(lambda u: entries(u).sum())(t), jax.hessian(lambda u: entries(u).sum())(t))
        )(theta)
    assert np.isfinite(model.probabilities(theta)).all()
    assert np.isfinite(root).all()
    assert np.isfinite(slope).all()
    assert np.isfinite(curve).all()


def test_a_model_without_parameters_is_uniform():
    model = MaxEnt.of((2, 3), ())
    assert model.parameters == 0
    tables = model.clique_probabilities(np.zeros(0))
    assert sorted(table.tolist() for table in tables) == [[0.5, 0.5], [1 / 3] * 3] or len(tables) == 2


@pytest.mark.parametrize("marginals", [((0, 0),), ((0, 2),), ((-1,),), ((),)])
def test_marginals_that_are_none_are_refused(marginals):
    with pytest.raises(ModelError):
        MaxEnt.of((2, 3), marginals)
