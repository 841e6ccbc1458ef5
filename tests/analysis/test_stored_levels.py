"""What a release stores and what is drawn from it are the same tables, so that they give the same columns."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisewise.analysis.glm import ols
from noisewise.errors import ReleaseError
from noisewise.synthesis import synthesize
from released import make_release, posterior


@pytest.fixture
def release(tmp_path):
    return make_release(tmp_path / "r", datasets=3)


def test_stored_datasets_equal_drawn_ones_with_all_levels_and_types(release):
    drawn = synthesize(posterior(), 3, seed=1)

    for stored, fresh in zip(release.datasets(), drawn, strict=True):
        assert stored.schema.types == fresh.schema.types
        assert stored.equals(fresh)
        assert stored["region"].chunk(0).dictionary.to_pylist() == [10, 20, 30]


def test_integer_levels_are_categories_in_a_model_not_numbers(release):
    estimates = ols("age ~ region").fit(release.datasets())

    assert estimates.terms == ("Intercept", "region[T.20]", "region[T.30]")


def test_a_level_that_no_dataset_has_keeps_its_place(release):
    for path in release.datasets().paths:
        table = pq.read_table(path)
        race = ["White" if value == "Other" else value for value in table["race"].to_pylist()]
        coded = pa.array(race).dictionary_encode()
        pq.write_table(table.set_column(0, "race", coded), path)

    assert release.datasets()[0]["race"].chunk(0).dictionary.to_pylist() == ["White", "Black", "Other"]
    estimates = ols("age ~ race").fit(release.datasets())
    assert estimates.terms == ("Intercept", "race[T.Black]", "race[T.Other]")
    assert estimates.used.tolist() == [[True, True, False]] * 3


def test_a_value_that_the_schema_does_not_have_is_refused(release):
    path = release.datasets().paths[0]
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "race", pa.array(["Martian"] * len(table)).dictionary_encode()), path)

    with pytest.raises(ReleaseError, match="race"):
        release.datasets()[0]
