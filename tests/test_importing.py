"""Other people's metadata: what is taken over, what is told to be added by hand, and that it cannot be used before."""

import json
from datetime import date

import pytest
from typer.testing import CliRunner

from noisewise.cli import app
from noisewise.errors import SchemaError
from noisewise.importing import FORMATS, import_metadata
from noisewise.schema import Schema

SDV = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "guest",
    "columns": {
        "guest": {"sdtype": "id", "regex_format": "G[0-9]+"},
        "mail": {"sdtype": "email", "pii": True},
        "age": {"sdtype": "numerical", "computer_representation": "Int64"},
        "paid": {"sdtype": "numerical", "computer_representation": "Float"},
        "room": {"sdtype": "categorical"},
        "stars": {"sdtype": "categorical", "order": ["one", "two"]},
        "member": {"sdtype": "boolean"},
        "arrived": {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"},
        "booked": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
        "left": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    },
}
FRICTIONLESS = {
    "name": "people",
    "missingValues": ["", "NA"],
    "primaryKey": "id",
    "fields": [
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2, 3]}},
        {"name": "size", "type": "string", "categories": [{"value": "S"}, {"value": "L"}], "categoriesOrdered": True},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}, "description": "In\nyears."},
        {"name": "wage", "type": "number"},
        {"name": "ill", "type": "boolean", "trueValues": ["yes"], "falseValues": ["no"]},
        {"name": "born", "type": "date", "constraints": {"minimum": "1990-01-01", "maximum": "1999-12-31"}},
        {"name": "town", "type": "string"},
        {"name": "where", "type": "geopoint"},
    ],
}


def write(folder, content):
    path = folder / "metadata.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def by_name(imported):
    return {column.name: column for column in imported.columns}


def test_sdv_metadata_give_kinds_and_ask_for_values(tmp_path):
    imported = import_metadata(write(tmp_path, SDV))
    columns = by_name(imported)

    assert list(columns) == ["age", "paid", "room", "stars", "member", "arrived", "booked", "left"]
    assert columns["age"].keys == {"type": "numeric", "edges": [], "integer": True}
    assert columns["stars"].keys["levels"] == ["one", "two"]
    assert columns["arrived"].keys == {"type": "date", "format": "DD.MM.YYYY"}
    assert columns["booked"].keys == {"type": "datetime"}
    assert any("'%d %b %Y'" in note for note in columns["left"].by_hand)
    assert "'guest' (id), 'mail' (email)" in imported.notes[0]
    assert "[privacy] unit" in imported.notes[0]
    assert not columns["member"].by_hand
    assert {name for name, column in columns.items() if column.by_hand} == set(columns) - {"member"}


def test_one_of_several_sdv_tables_is_chosen(tmp_path):
    path = write(tmp_path, {"tables": {"guests": SDV, "rooms": {"columns": {"n": {"sdtype": "boolean"}}}}})
    assert import_metadata(path, table="rooms").name == "rooms"
    with pytest.raises(SchemaError, match="several tables"):
        import_metadata(path)


def test_a_domain_is_complete_but_for_its_meaning(tmp_path):
    imported = import_metadata(write(tmp_path, {"age": 3, "sex": 2}))
    schema = Schema.from_toml(imported.text)

    assert schema.sizes == (3, 2)
    assert schema.column("age").levels == (0, 1, 2)
    assert schema.origin == "data-derived"
    assert len(imported.to_do) == 3


def test_a_table_schema_gives_what_it_knows(tmp_path):
    imported = import_metadata(write(tmp_path, FRICTIONLESS))
    columns = by_name(imported)

    assert imported.name == "people"
    assert columns["sex"].keys == {"type": "categorical", "levels": ["f", "m"], "missing_values": ["NA"]}
    assert columns["grade"].keys["levels"] == [1, 2, 3]
    assert columns["grade"].keys["missing"] == "category"
    assert columns["size"].keys["ordered"] is True
    assert columns["age"].keys["edges"] == [0, 120]
    assert columns["age"].keys["description"] == "In years."
    assert columns["wage"].keys["edges"] == []
    assert columns["ill"].keys["true_values"] == ["yes"]
    assert "where" not in columns
    assert "'where' (geopoint)" in imported.notes[0]


def test_what_is_imported_cannot_be_used_before_a_person_completes_it(tmp_path):
    text = import_metadata(write(tmp_path, FRICTIONLESS)).text
    with pytest.raises(SchemaError, match=r"column 'wage': edges"):
        Schema.from_toml(text)

    by_hand = text.replace(
        'name = "wage"\ntype = "numeric"\nedges = []', 'name = "wage"\ntype = "numeric"\nedges = [0, 9]'
    )
    by_hand = by_hand.replace(
        'name = "town"\ntype = "categorical"\nlevels = []', 'name = "town"\ntype = "categorical"\nlevels = ["a"]'
    )
    by_hand = by_hand.replace('last = "1999-12-31"', 'last = "1999-12-31"\nperiod = "year"')
    schema = Schema.from_toml(by_hand)

    assert schema.origin == "data-derived"
    assert schema.column("born").first == date(1990, 1, 1)
    assert schema.column("born").size == 11
    assert "# by hand: edges" in text


def test_a_data_package_names_its_table(tmp_path):
    path = write(tmp_path, {"resources": [{"name": "one", "schema": FRICTIONLESS}, {"name": "two", "schema": {}}]})
    assert import_metadata(path, table="one").name == "one"
    with pytest.raises(SchemaError, match="several tables"):
        import_metadata(path)
    with pytest.raises(SchemaError, match="no schema with fields"):
        import_metadata(path, table="two")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ([1], "not clear what kind"),
        ({}, "not clear what kind"),
        ({"a": 0}, "from 1"),
        ({"fields": 3}, "not laid out"),
        ({"fields": [{"type": "string"}]}, "not laid out"),
        ({"columns": {"a": 1}}, "not laid out"),
        ({"columns": {"a": {"sdtype": "email"}}}, "no column"),
    ],
)
def test_metadata_that_are_none_are_refused(tmp_path, content, words):
    with pytest.raises(SchemaError, match=words):
        import_metadata(write(tmp_path, content))


def test_unknown_formats_are_refused(tmp_path):
    with pytest.raises(SchemaError, match="Did you mean 'sdv'"):
        import_metadata(write(tmp_path, SDV), format="sdvv")
    assert set(FORMATS) == {"sdv", "domain", "frictionless"}
    with pytest.raises(SchemaError, match="Cannot read"):
        import_metadata(tmp_path / "nowhere.json")


def test_the_command_writes_the_beginning_and_says_what_to_do(tmp_path):
    path, target = write(tmp_path, FRICTIONLESS), tmp_path / "people.schema.toml"

    done = CliRunner().invoke(app, ["schema", "import", str(path), "-o", str(target)])

    assert done.exit_code == 0, done.output
    assert target.read_text("utf-8") == import_metadata(path).text
    for note in import_metadata(path).to_do:
        assert note in done.output
    again = CliRunner().invoke(app, ["schema", "import", str(path), "-o", str(target)])
    assert again.exit_code == SchemaError.exit_code
    assert "is there already" in again.output
