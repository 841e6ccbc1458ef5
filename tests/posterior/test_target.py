"""The fast density: integrated over its latent counts it is the paper's; its coordinates keep volume."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisewise.posterior import dense, target, values
from noisewise.posterior.arrays import Arrays
from posterior.small_problems import drawn_problem

SHAPES = {
    "a column that nothing measures": ((2, 3, 2), ((0, 1),)),
    "full joint": ((3, 2, 2), ((0, 1, 2),)),
    "triangle of pairs": ((3, 2, 2), ((0, 1), (1, 2), (0, 2))),
    "permuted duplicates": ((3, 2), ((0, 1), (1, 0), (1,))),
    "ring": ((3, 2, 2, 3), ((0, 1), (1, 2), (2, 3), (3, 0))),
    "disconnected": ((3, 2, 2, 3, 2), ((0, 1), (3, 2), (4,))),
    "tree": ((3, 2, 4, 3, 2, 2), ((0, 1), (1, 2), (1, 3), (2, 4), (0, 5))),
    "triples in a ring": ((3, 2, 2, 3, 2, 4), ((0, 1, 2), (3, 2), (4, 5), (3, 4), (1, 5))),
}
CANONICAL = {"triangle of pairs, canonical": "triangle of pairs", "tree, canonical": "tree"}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def given_problem(shape):
    cells = "canonical" if shape in CANONICAL else "all"
    return drawn_problem(*SHAPES[CANONICAL.get(shape, shape)], rows=400, stddev=7.0, prior=3.0, cells=cells)


def integrated(free, data, shape):
    """The log density with z integrated out: it is quadratic in z, so one Newton step from 0 is exact."""
    size = shape.latent

    def density(z):
        return target.log_density(jnp.asarray(free), z, data, shape)

    value = float(density(jnp.zeros(size)))
    if size == 0:
        return value
    slope = np.asarray(jax.grad(density)(jnp.zeros(size)))
    gradient = jax.jit(jax.vmap(jax.grad(density)))
    curvature = slope - np.asarray(gradient(jnp.eye(size)))  # exact for a quadratic
    return value + 0.5 * slope @ np.linalg.solve(curvature, slope) - 0.5 * np.linalg.slogdet(curvature)[1]


@pytest.mark.parametrize("shape", [*SHAPES, *CANONICAL])
def test_integrated_over_its_latent_counts_it_is_the_papers_density(shape):
    given, _ = given_problem(shape)
    arrays = Arrays.of(given)
    data, form = target.target_data(arrays)
    random = np.random.default_rng(0)
    points = random.normal(0, [[1.0], [1.0], [4.0]], (3, arrays.coordinates)).T
    theta = values.theta_of(arrays, values.values_at(arrays, points))
    ours = [integrated(point, data, form) for point in points.T]
    theirs = dense.log_densities(theta.T, given.model, dense.dense_data(given))
    # Constants differ; values are of order 100 to 10,000 and computed to about 12 digits.
    differences = np.array(ours) - np.asarray(theirs)
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_coordinates_lead_to_theta_and_keep_volume(shape):
    given, _ = given_problem(shape)
    arrays = Arrays.of(given)
    data, form = target.target_data(arrays)
    free = np.random.default_rng(1).normal(0, 1.5, arrays.coordinates)

    def theta(point):
        return target.theta_from(target.pass_down(point, jnp.zeros(form.latent), data, form).log_p, data)

    jacobian = np.asarray(jax.jacrev(theta)(jnp.asarray(free)))
    assert np.linalg.slogdet(jacobian)[1] == pytest.approx(0, abs=1e-9)
    at = values.values_at(arrays, free[:, None])
    plain = values.theta_of(arrays, at)[:, 0]
    np.testing.assert_allclose(np.asarray(theta(jnp.asarray(free))), plain, rtol=1e-12, atol=1e-12)
    expected = given.rows * given.model.probabilities(plain)
    np.testing.assert_allclose(values.expected_counts(arrays, at)[:, 0], expected, rtol=1e-10)
