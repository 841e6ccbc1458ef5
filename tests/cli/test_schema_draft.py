"""Drafts of schemas: what they guess, where they may come from, and that data-derived ones are refused."""

import datetime

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from noisewise import Budget, Schema, Workload, measure
from noisewise.cli import app
from noisewise.confidential.counts import count
from noisewise.drafting import _even_edges, draft_from_table, draft_text
from noisewise.errors import SchemaError

SAMPLE = pa.table(
    {
        "sex": ["f", "m", "f", None] * 10,
        "age": list(range(18, 58)),
        "income": [1234.5 * i for i in range(40)],
        "grade": [1, 2, 3, 4] * 10,
        "owner": [True, False] * 20,
        "born": [datetime.date(1990 + i % 5, 3, 1) for i in range(40)],
    }
)
MANY = pa.table({"note": [f"free text {i}" for i in range(60)], "x": [i % 2 for i in range(60)]})


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_draft_from_a_sample_fits_the_sample(tmp_path):
    pq.write_table(SAMPLE, tmp_path / "sample.parquet")
    result = run("schema", "draft", "--public-sample", tmp_path / "sample.parquet", "-o", tmp_path / "s.toml")
    schema = Schema.load(tmp_path / "s.toml")

    assert result.exit_code == 0, result.output
    assert schema.origin == "public-sample"
    assert [c.type for c in schema.columns[:6]] == [
        "categorical",
        "numeric",
        "numeric",
        "categorical",
        "boolean",
        "date",
    ]
    assert schema.column("sex").labels == ("f", "m", "(missing)")
    assert schema.column("grade").levels == (1, 2, 3, 4)
    assert schema.column("age").edges == (15, 20, 25, 30, 35, 40, 45, 50, 55, 60)
    assert count(SAMPLE, schema, [(name,) for name in schema.names]).rows == 40
    assert "add the levels that are missing" in (tmp_path / "s.toml").read_text()


def test_free_text_is_left_out_and_said(tmp_path):
    pyarrow.csv.write_csv(MANY, tmp_path / "sample.csv")
    result = run("schema", "draft", "--public-sample", tmp_path / "sample.csv", "-o", tmp_path / "s.toml")

    assert Schema.load(tmp_path / "s.toml").names == ("x",)
    assert "free text or are empty: note" in result.stdout
    assert "note" in (tmp_path / "s.toml").read_text()


def test_a_draft_from_confidential_data_takes_a_flag_and_is_refused_until_a_person_changed_its_mark(tmp_path):
    pyarrow.csv.write_csv(MANY, tmp_path / "table.csv")
    result = run("schema", "draft", "--from-confidential-data", tmp_path / "table.csv", "-o", tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    schema = Schema.load(tmp_path / "s.toml")

    assert result.exit_code == 0, result.output
    assert schema.origin == "data-derived"
    assert "give records away" in text
    assert (tmp_path / "s.toml").stat().st_mode & 0o077 == 0
    with pytest.raises(SchemaError, match="data-derived"):
        measure(tmp_path / "table.csv", schema, Workload.of(schema, [["x"]]), Budget(1.0))
    (tmp_path / "s.toml").write_text(text.replace('origin = "data-derived"', 'origin = "reviewed"'))
    reviewed = Schema.load(tmp_path / "s.toml")
    assert measure(tmp_path / "table.csv", reviewed, Workload.of(reviewed, [["x"]]), Budget(1.0)).rows == 60


def test_a_confidential_table_that_cannot_be_read_is_not_quoted(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\nCANARY,CANARY,CANARY\n")
    result = run("schema", "draft", "--from-confidential-data", tmp_path / "table.csv", "-o", tmp_path / "s.toml")
    public = run("schema", "draft", "--public-sample", tmp_path / "table.csv", "-o", tmp_path / "s.toml")

    assert (result.exit_code, public.exit_code) == (5, 3)
    assert "CANARY" not in result.output
    assert not (tmp_path / "s.toml").exists()


def test_a_draft_from_a_codebook(tmp_path):
    (tmp_path / "codes.csv").write_text(
        "column,value,label,from,to,bins\nsex,1,female,,,\nsex,2,male,,,\nregion,N,,,,\nregion,S,,,,\nage,,,0,100,5\n"
    )
    result = run("schema", "draft", "--codebook", tmp_path / "codes.csv", "-o", tmp_path / "s.toml", "--name", "people")
    schema = Schema.load(tmp_path / "s.toml")

    assert result.exit_code == 0, result.output
    assert (schema.name, schema.origin) == ("people", "hand-written")
    assert schema.column("sex").source_values == (("female", "1"), ("male", "2"))
    assert schema.column("region").labels == ("N", "S")
    assert schema.column("age").edges == (0, 20, 40, 60, 80, 100)


@pytest.mark.parametrize(
    ("codebook", "words"),
    [
        ("column,value\n", "no rows"),
        ("x,y\n1,2\n", "names no column"),
        ("column,value\na,\n", "without a value"),
        ("column,value\na,1\na,1\n", "repeats"),
        ("column,from,to\na,low,high\n", "must be numbers"),
    ],
)
def test_codebooks_that_say_nothing_are_refused(tmp_path, codebook, words):
    (tmp_path / "codes.csv").write_text(codebook)
    result = run("schema", "draft", "--codebook", tmp_path / "codes.csv", "-o", tmp_path / "s.toml")

    assert result.exit_code == 3
    assert words in result.stderr


def test_it_must_be_said_what_may_be_read_and_nothing_is_written_over(tmp_path):
    for words in ((), ("--codebook", "a", "--public-sample", "b")):
        result = run("schema", "draft", "-o", tmp_path / "s.toml", *words)
        assert result.exit_code == 3
        assert "what may be read?" in result.stderr
    (tmp_path / "s.toml").write_text("mine")
    result = run("schema", "draft", "--codebook", tmp_path / "codes.csv", "-o", tmp_path / "s.toml")
    assert "not written over" in result.stderr
    assert (tmp_path / "s.toml").read_text() == "mine"
    assert "Cannot read the codebook" in run(
        "schema", "draft", "--codebook", tmp_path / "codes.csv", "-o", tmp_path / "t.toml"
    ).stderr  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20), st.integers(1, 30))
def test_edges_are_few_round_and_hold_every_value(values, bins):
    edges = _even_edges(min(values), max(values), bins)

    assert edges[0] <= min(values)
    assert edges[-1] >= max(values)
    assert list(edges) == sorted(set(edges))
    assert len(edges) - 1 <= bins + 2


def test_a_table_with_nothing_to_count_is_told():
    with pytest.raises(SchemaError, match="Write the schema by hand"):
        draft_from_table(MANY.select(["note"]), "t", "public-sample")
    schema, _ = draft_from_table(MANY.select(["x"]), "t", "public-sample")
    assert Schema.from_toml(draft_text(schema)) == schema
