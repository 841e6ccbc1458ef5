"""The fast density: integrated over latent counts it is the paper's, its gradient is right, JAX computes the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.test_masks import RULED
from noisewise.model.maxent import MaxEnt
from noisewise.posterior import dense, target, values
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.density import Density
from noisewise.posterior.maps import monotone_maps
from noisewise.posterior.problem import NormalPrior, Problem
from posterior.small_problems import drawn_problem

SHAPES = {
    "a column that nothing measures": ((2, 3, 2), ((0, 1),)),
    "full joint": ((3, 2, 2), ((0, 1, 2),)),
    "triangle of pairs": ((3, 2, 2), ((0, 1), (1, 2), (0, 2))),
    "permuted duplicates": ((3, 2), ((0, 1), (1, 0), (1,))),
    "one column": ((4,), ((0,),)),
    "ring": ((3, 2, 2, 3), ((0, 1), (1, 2), (2, 3), (3, 0))),
    "disconnected": ((3, 2, 2, 3, 2), ((0, 1), (3, 2), (4,))),
    "tree": ((3, 2, 4, 3, 2, 2), ((0, 1), (1, 2), (1, 3), (2, 4), (0, 5))),
    "triples in a ring": ((3, 2, 2, 3, 2, 4), ((0, 1, 2), (3, 2), (4, 5), (3, 4), (1, 5))),
    "pairs of four": ((2, 3, 2, 2), ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))),
}
CANONICAL = {"triangle of pairs, canonical": "triangle of pairs", "tree, canonical": "tree"}
WITH_RULES = [name for name, (_, marginals, _) in RULED.items() if marginals]


def given_problem(shape) -> Problem:
    if shape in RULED:
        return ruled_problem(*RULED[shape])
    cells = "canonical" if shape in CANONICAL else "all"
    return drawn_problem(*SHAPES[CANONICAL.get(shape, shape)], rows=400, stddev=7.0, prior=3.0, cells=cells)[0]


def ruled_problem(sizes, marginals, impossible) -> Problem:
    random = np.random.default_rng(3)
    model = MaxEnt.of(sizes, marginals, impossible)
    expected = 400 * model.probabilities(random.normal(0, 0.7, model.parameters))
    noisy = np.rint(expected + random.normal(0, 9, len(expected)))
    return Problem(
        model=model,
        noisy=noisy,
        noise_variance=np.full(len(noisy), 49.0),
        observed=np.ones(len(noisy), bool),
        rows=400,
        prior=NormalPrior(stddev=3.0),
    )


def density_of(given) -> Density:
    arrays = Arrays.of(given)
    return Density(arrays, monotone_maps(arrays))


def integrated(density, free):
    """Log density of log odds with z integrated out: it is quadratic in z, so one Newton step from 0 is exact."""
    size = density.latent

    def at(z):
        return density.at(np.repeat(free[:, None], z.shape[1], 1), z)

    value, _, slope = at(np.zeros((size, 1)))
    if size == 0:
        return value[0]
    curvature = slope - at(np.eye(size))[2]  # exact for a quadratic
    slope = slope[:, 0]
    return value[0] + 0.5 * slope @ np.linalg.solve(curvature, slope) - 0.5 * np.linalg.slogdet(curvature)[1]


@pytest.mark.parametrize("shape", [*SHAPES, *CANONICAL, *WITH_RULES])
def test_integrated_over_its_latent_counts_it_is_the_papers_density(shape):
    given = given_problem(shape)
    density = density_of(given)
    random = np.random.default_rng(0)
    points = random.normal(0, [[1.0], [1.0], [3.0]], (3, density.arrays.coordinates)).T
    at = values.values_at(density.arrays, points)
    theta = values.theta_of(density.arrays, at)
    counts = values.expected_counts(density.arrays, at)
    for parameters, expected in zip(theta.T, counts.T, strict=True):
        np.testing.assert_allclose(given.rows * given.model.probabilities(parameters), expected, rtol=1e-8, atol=1e-8)
    ours = [integrated(density, point) for point in points.T]
    with jax.enable_x64(True):
        theirs = dense.log_densities(theta.T, given.model, dense.dense_data(given))
    # Constants differ; the values are of order 10 to 10,000 and computed to 12 digits or so.
    differences = np.array(ours) - np.asarray(theirs)
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


@pytest.mark.parametrize("shape", [*SHAPES, "three columns", "what one rule leaves another takes"])
def test_the_gradient_is_that_of_the_density_and_coordinates_keep_volume(shape):
    density = density_of(given_problem(shape))
    random = np.random.default_rng(1)
    for scale in (0.5, 2.0):
        point = random.normal(0, scale, density.dimensions)
        _, gradient = density(point[:, None])
        step = 1e-5 * np.eye(len(point))
        slope = (density(point[:, None] + step)[0] - density(point[:, None] - step)[0]) / 2e-5
        # Central differences err by h² f'''/6 and rounding/h: 1e-7 or so of values up to 1e4.
        np.testing.assert_allclose(gradient[:, 0], slope, rtol=1e-5, atol=1e-4)
    free = random.normal(0, 1.0, density.arrays.coordinates)

    def theta(points):
        return values.theta_of(density.arrays, values.values_at(density.arrays, points))

    step = 1e-6 * np.eye(len(free))
    jacobian = (theta(free[:, None] + step) - theta(free[:, None] - step)) / 2e-6
    other = free + random.normal(0, 1.0, len(free))
    again = (theta(other[:, None] + step) - theta(other[:, None] - step)) / 2e-6
    assert np.linalg.slogdet(jacobian)[1] == pytest.approx(np.linalg.slogdet(again)[1], abs=1e-6)


@pytest.mark.parametrize("shape", ["tree", "triples in a ring", "both measured together"])
def test_jax_computes_the_same(shape):
    density = density_of(given_problem(shape))
    random = np.random.default_rng(2)
    free, z = random.normal(0, 1.5, density.arrays.coordinates), random.normal(0, 1, density.latent)
    value, to_free, to_z = density.at(free[:, None], z[:, None])
    with jax.enable_x64(True):
        data, form = target.target_data(density.arrays)
        both = jax.value_and_grad(lambda at: target.log_density(at[0], at[1], data, form))
        theirs, (by_free, by_z) = both((jnp.asarray(free), jnp.asarray(z)))
    assert float(theirs) == pytest.approx(value[0], rel=1e-12)
    np.testing.assert_allclose(np.asarray(by_free), to_free[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.asarray(by_z), to_z[:, 0], rtol=1e-9, atol=1e-9)


def test_small_gathers_are_the_same_as_matrices(monkeypatch):
    from noisewise.posterior import gathers

    density = density_of(given_problem("triples in a ring"))
    free, z = np.full(density.arrays.coordinates, 0.3), np.full(density.latent, 0.5)

    def value():
        data, form = target.target_data(density.arrays)
        both = jax.value_and_grad(lambda at: target.log_density(at, jnp.asarray(z), data, form))
        return both(jnp.asarray(free))

    with jax.enable_x64(True):
        plain = value()
        monkeypatch.setattr(gathers, "MAX_DENSE", 0)
        gathered = value()
    assert float(gathered[0]) == pytest.approx(float(plain[0]), rel=1e-12)
    np.testing.assert_allclose(np.asarray(gathered[1]), np.asarray(plain[1]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", ["full joint", "ring", "tree"])
def test_maps_increase_and_have_the_derivatives_they_say(shape):
    maps = monotone_maps(Arrays.of(given_problem(shape)))
    u = np.linspace(-9, 9, 1801)
    value, slope, bend = maps(np.repeat(u[None], len(maps.coefficients), 0))
    assert (slope > 0).all()
    assert (np.diff(value, axis=1) > 0).all()
    # Trapezoids of width 0.01 err by h²/12 times the next derivative: 1e-5 of slopes that vary by a few per unit.
    np.testing.assert_allclose(np.diff(value, axis=1), 0.005 * (slope[:, 1:] + slope[:, :-1]), rtol=2e-3, atol=1e-6)
    middle = np.abs(u[1:-1]) < 5.9
    change = (slope[:, 2:] - slope[:, :-2]) / 0.02
    np.testing.assert_allclose(change[:, middle], bend[:, 1:-1][:, middle], rtol=0.05, atol=0.02 * np.abs(bend).max())


@pytest.mark.parametrize("shape", ["full joint", "ring", "tree"])
def test_maps_are_undone_by_their_inverse(shape):
    maps = monotone_maps(Arrays.of(given_problem(shape)))
    u = np.repeat(np.linspace(-9, 9, 61)[None], len(maps.coefficients), 0)
    odds, slope, _ = maps(u)
    # 48 halvings of 12 leave 4e-14; a rounding error of the log odds is stretched where the map is flat.
    allowed = 1e-12 + 1e-14 * np.abs(odds) / slope
    assert (np.abs(maps.inverse(odds) - u) < allowed).all()
