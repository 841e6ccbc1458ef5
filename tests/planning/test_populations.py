"""Where the invented rows of a plan come from: public tables, earlier releases, uniform rows."""

import numpy as np
import polars as pl
import pytest

from noisewise.artifacts import Release
from noisewise.errors import StudyError
from noisewise.rehearsal import Uniform
from noisewise.schema import Schema
from noisewise.study.planned import population_like
from noisewise.study.sample import public_sample
from small_release import SCHEMA, posterior_by_hand

TEXT = """
name = "people"
[[column]]
name = "age"
type = "numeric"
edges = "quantiles"
bins = 4
grid = { from = 0, to = 100, step = 5 }
codes = ["N"]
missing = "category"
[[column]]
name = "spouse"
type = "boolean"
[[column]]
name = "town"
type = "categorical"
levels = ["a", "b"]
[[rule]]
impossible = { spouse = "true", town = "b" }
"""
PEOPLE = Schema.from_toml(TEXT)


def write(folder, **columns):
    path = folder / "sample.csv"
    pl.DataFrame(columns).write_csv(path)
    return path


def test_a_public_sample_becomes_codes_with_edges_at_its_own_quantiles(tmp_path):
    random = np.random.default_rng(0)
    ages = np.minimum(99.9, random.exponential(20, 4000))
    age = [*(str(a) for a in ages), "N", ""]
    path = write(tmp_path, age=age, spouse=["false"] * 4002, town=["a", "b"] * 2001)

    codes, settled = public_sample(path, PEOPLE)

    edges = settled.column("age").edges
    assert settled.column("age").bins == 4
    assert set(edges) <= set(PEOPLE.column("age").points)
    expected = np.searchsorted(edges[1:-1], ages, side="right")
    assert (codes[:4000, 0] == expected).all()
    assert codes[4000:, 0].tolist() == [4, 5]
    # Quarters, as near as a grid of steps of 5 comes to them: at most half a step's share of rows away each.
    shares = np.bincount(codes[:4000, 0], minlength=4) / 4000
    steps = np.histogram(ages, PEOPLE.column("age").points)[0].max() / 4000
    assert (abs(shares - 0.25) <= steps).all()


def test_rows_without_a_place_are_left_out_and_a_wrong_table_is_refused(tmp_path):
    path = write(tmp_path, age=[1, 2, 3, 4], spouse=["true", "true", "false", "maybe"], town=["a", "b", "b", "a"])
    codes, _ = public_sample(path, PEOPLE)
    assert codes[:, 1:].tolist() == [[1, 0], [0, 1]]

    other = write(tmp_path, age=[1, 2], spouse=["true", "true"], town=["x", "y"])
    with pytest.raises(StudyError, match=r"does not know: 'town' \(100%\)"):
        public_sample(other, PEOPLE)
    none = write(tmp_path, age=[1, 2], spouse=["true", "true"], town=["b", "b"])
    with pytest.raises(StudyError, match="No row of"):
        public_sample(none, PEOPLE)


def test_uniform_rows_keep_to_the_rules():
    settled = PEOPLE.with_edges({"age": (0.0, 50.0, 100.0)})
    codes = Uniform(schema=settled).draw(4_000, np.random.default_rng(0))
    free = Uniform(schema=Schema.from_toml(TEXT.partition("[[rule]]")[0]).with_edges({"age": (0.0, 50.0, 100.0)}))

    assert not ((codes[:, 1] == 1) & (codes[:, 2] == 1)).any()
    assert ((free.draw(4_000, np.random.default_rng(0))[:, 1:] == 1).all(1)).any()
    # Three possible pairs, each with a third of the rows: five standard errors.
    assert abs((codes[:, 1] == 1).mean() - 1 / 3) < 5 * (2 / 9 / 4_000) ** 0.5


def test_bought_edges_are_even_where_rows_are_uniform():
    settled, population = population_like("uniform", PEOPLE)

    assert settled.column("age").edges == (0.0, 25.0, 50.0, 75.0, 100.0)
    assert population.schema == settled


def test_an_earlier_release_is_a_population_if_its_schema_is_the_same(tmp_path):
    made, release = posterior_by_hand(), Release(tmp_path / "earlier")
    release.write_noisy_counts(made.noisy_counts)
    release.write_posterior(made)

    settled, population = population_like(str(tmp_path / "earlier"), SCHEMA)

    assert settled == SCHEMA
    assert population.draw(10, np.random.default_rng(0)).shape == (10, 4)
    with pytest.raises(StudyError, match="a release of another schema"):
        population_like(str(tmp_path / "earlier"), PEOPLE)
