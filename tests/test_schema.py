"""The public schema: what it accepts, what it refuses and how, and what its levels decode to."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import REPOSITORY
from noisewise.errors import SchemaError
from noisewise.schema import MISSING_LABEL, Boolean, Categorical, Numeric, Schema

MIXED = """
name = "people"

[[column]]
name = "sex"
type = "categorical"
levels = ["f", "m"]
other = "x"

[[column]]
name = "age"
type = "numeric"
edges = [0, 18, 65, 120]
integer = true
missing = "category"

[[column]]
name = "ill"
type = "boolean"
"""


def test_levels_are_in_canonical_order():
    schema = Schema.from_toml(MIXED)

    assert schema.names == ("sex", "age", "ill")
    assert schema.sizes == (3, 4, 2)
    assert schema.column("sex").labels == ("f", "m", "x")
    assert schema.column("age").labels == ("[0, 18)", "[18, 65)", "[65, 120]", MISSING_LABEL)
    assert schema.column("ill").labels == ("false", "true")


def test_decoding_gives_labels_representatives_booleans_and_nulls():
    schema = Schema.from_toml(MIXED)

    table = schema.decode(np.array([[0, 0, 0], [2, 2, 1], [1, 3, 0]]))

    assert table["sex"].to_pylist() == ["f", "x", "m"]
    assert table["age"].to_pylist() == [8, 92, None]
    assert table["ill"].to_pylist() == [False, True, False]
    assert table["sex"].combine_chunks().dictionary.to_pylist() == ["f", "m", "x"]
    assert table.schema.field("age").type == pa.int64()


def test_equal_content_has_an_equal_hash_and_text():
    schema = Schema.from_toml(MIXED)
    spaced = Schema.from_toml(MIXED.replace("levels = [", "levels   =  ["))

    assert schema.hash == spaced.hash
    assert schema.to_toml() == spaced.to_toml()
    assert Schema.from_toml(schema.to_toml()).hash == schema.hash


@pytest.mark.parametrize(
    ("old", "new"),
    [('["f", "m"]', '["m", "f"]'), ("[0, 18, 65, 120]", "[0, 18, 66, 120]"), ('"people"', '"persons"')],
)
def test_other_content_has_another_hash(old, new):
    assert Schema.from_toml(MIXED).hash != Schema.from_toml(MIXED.replace(old, new)).hash


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('levels = ["f", "m"]', 'levels = ["f", "f"]', 7, "levels repeat 'f'. Remove one"),
        ('levels = ["f", "m"]', 'levels = ["f", 1]', 7, "mix text and integers"),
        ('levels = ["f", "m"]', "levels = []", 7, "at least 1 item"),
        ('levels = ["f", "m"]', 'levls = ["f", "m"]', 7, "Did you mean 'levels'"),
        ('other = "x"', "other = 3", 8, "other"),
        ("edges = [0, 18, 65, 120]", "edges = [0, 65, 18, 120]", 13, "edges must increase"),
        ("edges = [0, 18, 65, 120]", "edges = [0]", 13, "at least 2 items"),
        ("edges = [0, 18, 65, 120]", "edges = [0, 18, inf]", 13, "Declare `representatives`"),
        ('missing = "category"', 'missing = "drop"', 15, "'forbid' or 'category'"),
        ('type = "boolean"', 'type = "bool"', 19, "unknown type"),
        ('type = "boolean"\n', "", 17, "'type' is missing"),
        ('name = "ill"', 'name = "age"', None, "column names repeat 'age'"),
    ],
)
def test_errors_name_the_line_the_column_and_the_fix(old, new, line, words):
    assert old in MIXED
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(MIXED.replace(old, new), source="people.schema.toml")

    message = str(caught.value)
    assert words in message
    assert message.startswith("people.schema.toml")
    assert "after validation" not in message
    if line is not None:
        stated = int(message.partition("line ")[2].partition(":")[0])
        first = MIXED.replace(old, new).splitlines()[stated - 1]
        assert stated == line or "[[column]]" in first, message


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(SchemaError, match=r"Cannot read the schema .*none\.toml"):
        Schema.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.load(tmp_path / "latin.toml")
    (tmp_path / "broken.toml").write_text("name = ")
    with pytest.raises(SchemaError, match="not valid TOML"):
        Schema.load(tmp_path / "broken.toml")


def test_a_schema_without_columns_is_refused():
    with pytest.raises(SchemaError, match="column"):
        Schema.from_toml('name = "nothing"')


def test_an_unknown_column_is_answered_with_the_nearest():
    with pytest.raises(SchemaError, match=r"Column 'agee' is not in the schema\. Did you mean 'age'"):
        Schema.from_toml(MIXED).index("agee")


def test_the_byte_order_mark_of_editors_is_accepted(tmp_path):
    (tmp_path / "people.toml").write_text(MIXED, "utf-8-sig")

    assert Schema.load(tmp_path / "people.toml").name == "people"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Numeric(name="a", edges=(0, 10)), (5.0,)),
        (Numeric(name="a", edges=(17, 32, 47), integer=True), (24.0, 39.0)),
        (Numeric(name="a", edges=(0, 1, 2), integer=True), (0.0, 1.0)),
        (Numeric(name="a", edges=(0, 10, 20), closed="right", integer=True), (5.0, 15.0)),
        (Numeric(name="a", edges=(0, 1, 1e6), representatives=(0, 5000)), (0.0, 5000.0)),
    ],
)
def test_representative_values(column, expected):
    assert column.midpoints == expected


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=9, unique=True), st.sampled_from(["left", "right"]))
def test_a_bins_representative_lies_in_its_bin(edges, closed):
    ordered = sorted(edges)
    column = Numeric(name="a", edges=ordered, closed=closed)

    assert column.size == len(ordered) - 1
    assert all(low <= middle <= high for low, middle, high in zip(ordered, column.midpoints, ordered[1:], strict=False))


def test_a_label_may_look_like_anything():
    labels = ("<script>", "a,b", 'quote"', "ü", "名", "a\nb", " ")
    schema = Schema(column=(Categorical(name="odd name; --", levels=labels), Boolean(name="flag")))

    again = Schema.from_toml(schema.to_toml())

    assert again.hash == schema.hash
    assert again.decode(np.array([[5, 0]]))["odd name; --"].to_pylist() == ["a\nb"]


def test_the_reference_is_a_schema():
    text = (REPOSITORY / "docs" / "schema.md").read_text("utf-8")
    schema = Schema.from_toml("\n".join(re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)))

    assert {column.type for column in schema.columns} == {"categorical", "boolean", "numeric", "date", "datetime"}
    assert len(schema.rules) == 3
    assert [column.name for column in schema.to_be_bought] == ["wage"]
