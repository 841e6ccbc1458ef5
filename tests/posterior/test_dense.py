"""The paper's likelihood against SciPy and enumeration, its derivatives against finite differences."""

import jax
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from noisewise.posterior import dense
from oracles.enumeration import Enumeration
from posterior.small_problems import drawn_problem, problem

SHAPES = {
    "triangle": ((3, 2, 2), ((0, 1), (1, 2), (0, 2))),
    "full joint": ((2, 2, 2), ((0, 1, 2),)),
    "permuted duplicates": ((2, 3), ((1, 0), (0, 1), (1,))),
}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def reference(theta, given):
    """log N(s̃; nμ, nΣ + noise) + log prior, less the constants that the code leaves out."""
    truth, kept = Enumeration(given.model.tree.sizes, given.model.marginals), given.observed
    mean = given.rows * truth.cell_probabilities(theta)[kept]
    covariance = given.rows * truth.covariance(theta)[np.ix_(kept, kept)] + np.diag(given.noise_variance[kept])
    constant = 0.5 * kept.sum() * np.log(2 * np.pi)
    log_likelihood = multivariate_normal(mean, covariance).logpdf(given.noisy[kept]) + constant
    return log_likelihood - 0.5 * np.sum((theta / given.prior.stddev) ** 2)


@pytest.mark.parametrize("cells", ["all", "canonical"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_density_is_the_papers(shape, cells):
    given, theta = drawn_problem(*SHAPES[shape], rows=400, stddev=7.0, prior=3.0, cells=cells)
    data = dense.dense_data(given)
    random = np.random.default_rng(1)
    points = [theta, np.zeros_like(theta), *random.normal(0, 2, (3, len(theta)))]
    for point in points:
        ours = float(dense.log_density(point, given.model, data))
        assert ours == pytest.approx(reference(point, given), rel=1e-9, abs=1e-8)
    together = dense.log_densities(np.stack(points), given.model, data)
    assert np.asarray(together) == pytest.approx([reference(p, given) for p in points], rel=1e-9)


def test_noise_may_differ_between_cells():
    stddev = np.array([1.0, 2.0, 3.0, 40.0])
    given = problem((2, 2), ((0, 1),), [10, 20, 30, 40], stddev, 100)
    theta = np.array([0.3, -0.4, 0.2])
    assert float(dense.log_density(theta, given.model, dense.dense_data(given))) == pytest.approx(
        reference(theta, given), rel=1e-10
    )


def test_the_canonical_cells_are_one_per_parameter():
    given, _ = drawn_problem(*SHAPES["triangle"], rows=400, stddev=7.0, cells="canonical")
    assert given.observed.sum() == given.model.parameters == 9
    full, _ = drawn_problem(*SHAPES["full joint"], rows=400, stddev=7.0, cells="canonical")
    assert full.observed.tolist() == [False] + [True] * 7


def value_and_gradient(theta, given):
    data = dense.dense_data(given)
    value, gradient = jax.value_and_grad(dense.log_density)(theta, given.model, data)
    return float(value), np.asarray(gradient)


@pytest.mark.parametrize("shape", ["triangle", "full joint"])
def test_the_gradient_is_that_of_the_reference(shape):
    given, theta = drawn_problem(*SHAPES[shape], rows=400, stddev=7.0)
    value, gradient = value_and_gradient(theta, given)
    assert value == pytest.approx(reference(theta, given), rel=1e-9)
    # Central differences with step h err by h² f'''/6 + ε|f|/h: about 1e-6 at h = 1e-5; the gradients are 10 and more.
    np.testing.assert_allclose(gradient, central(lambda t: reference(t, given), theta, 1e-5), rtol=1e-5, atol=1e-4)


def central(function, at, step):
    units = np.eye(len(at)) * step
    return np.array([(function(at + unit) - function(at - unit)) / (2 * step) for unit in units])


def test_derivatives_stay_finite_where_cells_vanish():
    given, theta = drawn_problem(*SHAPES["full joint"], rows=400, stddev=7.0)
    for far in (-2000.0, 2000.0):
        point = theta.copy()
        point[-1] = far
        value, gradient = value_and_gradient(point, given)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
