"""Whatever is handed to a reader, it answers or refuses by name; beside records it refuses with a code only."""

import json
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from measured import SCHEMA, WORKLOAD, measured_release
from noisewise.artifacts import MANIFEST, damage
from noisewise.artifacts.promise import release_gaps
from noisewise.confidential.counts import count
from noisewise.errors import DataError, NoisewiseError, SchemaError
from noisewise.schema import Schema

QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
FEW = settings(max_examples=40, deadline=None, suppress_health_check=QUIET)
MANY = settings(max_examples=1000, deadline=None, suppress_health_check=QUIET)


def outcome(work, kind):
    """What some work gave, or its error of the one kind that it may have."""
    try:
        return work(), None
    except kind as error:
        return None, error


# CSV

FIELD = st.one_of(
    st.sampled_from(["p", "q", "r", "s", "t", "u", "v", "", "NaN", '"', '""', ",", "\r", "\x00", "\ufeff", "é", "p,q"]),
    st.text(max_size=8),
)
TABLE = st.lists(st.lists(FIELD, min_size=1, max_size=10), max_size=6)
HEADER = st.sampled_from(
    [
        "a,b,c",
        "a,b,c,d,e,f,g,h",
        "c,b,a",
        "a,a,b,c",
        "\ufeffa,b,c",
        '"a","b","c"',
        "a;b;c",
        "a\tb\tc",
        "",
        ",,",
        "A,B,C",
    ]
)


def as_csv(header, rows, end, encoding, quoted):
    lines = [header, *(",".join(f'"{f}"' if quoted else f for f in row) for row in rows)]
    return end.join(lines).encode(encoding, "replace")


def refused_or_counted(folder, content):
    """Counting a file: every row is counted, or there is a code; and nothing else."""
    path = folder / "table.csv"
    path.write_bytes(content)
    exact, error = outcome(lambda: count(path, SCHEMA, WORKLOAD.marginals), DataError)
    if error is not None:
        assert str(error) == str(DataError(error.code, error.column))
        assert error.column is None or error.column in SCHEMA.names
        assert error.__cause__ is None
        assert error.__context__ is None
        return
    assert all(int(counts.sum()) == exact.rows for counts in exact.tables.values())


def csv_tables(test):
    return given(
        HEADER, TABLE, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["utf-8", "utf-16", "latin-1"]),
        st.booleans(),
    )(test)  # fmt: skip


@FEW
@csv_tables
def test_a_csv_file_is_counted_or_refused_with_a_code(tmp_path, header, rows, end, encoding, quoted):
    refused_or_counted(tmp_path, as_csv(header, rows, end, encoding, quoted))


@pytest.mark.slow
@MANY
@csv_tables
def test_a_thousand_csv_files(tmp_path, header, rows, end, encoding, quoted):
    refused_or_counted(tmp_path, as_csv(header, rows, end, encoding, quoted))


@FEW
@given(st.binary(max_size=300))
def test_any_bytes_are_counted_or_refused_with_a_code(tmp_path, content):
    refused_or_counted(tmp_path, b"a,b,c\n" + content)


def test_a_field_of_megabytes_is_refused_with_a_code(tmp_path):
    good = b"p,r,u\n" * 10
    for field in (b"x" * 3_000_000, b'"' + b"y" * 3_000_000 + b'"', b'"' + b"z" * 3_000_000):
        path = tmp_path / "table.csv"
        path.write_bytes(b"a,b,c\n" + good + field + b",r,u\n")
        with pytest.raises(DataError) as caught:
            count(path, SCHEMA, [("a", "b"), ("b", "c")])
        assert len(str(caught.value)) < 300


# Schemas


WORDS = st.sampled_from(
    ["categorical", "numeric", "boolean", "date", "quantiles", "category", "", "a", "NaN", "[", "end-bins", "monthly"]
)
VALUE = st.recursive(
    st.one_of(WORDS, st.integers(-5, 10**20), st.floats(), st.booleans(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "name",
        "type",
        "levels",
        "edges",
        "missing",
        "other",
        "bins",
        "grid",
        "fold",
        "integer",
        "beyond",
        "codes",
        "format",
    ]
)


def loaded(text):
    """A schema that is accepted is canonical; all else is a SchemaError."""
    schema, error = outcome(lambda: Schema.from_toml(text), SchemaError)
    if error is not None:
        assert str(error)
        return
    again = Schema.from_toml(schema.to_toml())
    assert again == schema
    assert again.hash == schema.hash
    assert all(size >= 1 for size in schema.sizes)


@FEW
@given(
    st.lists(st.dictionaries(KEYS, VALUE, max_size=6), max_size=3),
    st.dictionaries(st.text(max_size=6), VALUE, max_size=2),
)
def test_a_schema_is_read_or_refused(columns, rest):
    import tomli_w

    loaded(tomli_w.dumps({**rest, "column": columns}))


@pytest.mark.slow
@MANY
@given(
    st.lists(st.dictionaries(KEYS, VALUE, max_size=6), max_size=3),
    st.dictionaries(st.text(max_size=6), VALUE, max_size=2),
)
def test_a_thousand_schemas(columns, rest):
    import tomli_w

    loaded(tomli_w.dumps({**rest, "column": columns}))


@FEW
@given(st.text(max_size=200))
def test_any_text_is_a_schema_or_refused(text):
    loaded(text)


@FEW
@given(st.integers(0, 10**6), st.sampled_from(["", '"', "[", "]", "=", "\n", "-1", "nan", "1e400", "\x00", "x" * 500]))
def test_a_schema_with_one_slip_is_read_or_refused(position, slip):
    text = SCHEMA.to_toml()
    position %= len(text)
    loaded(text[:position] + slip + text[position + 1 :])


# Releases


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return measured_release(tmp_path_factory.mktemp("fuzz") / "release")


def places(content, path=()):
    """Every place in a JSON value."""
    yield path
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def checked(release, content: bytes):
    """Reading and verifying never fails with anything but an error of ours."""
    path = release.folder / MANIFEST
    whole = path.read_bytes()
    path.write_bytes(content)
    try:
        outcome(lambda: (damage(release), release_gaps(release)), NoisewiseError)
    finally:
        path.write_bytes(whole)


def edits(test):
    return given(st.integers(0, 10**6), VALUE, st.sampled_from(["replace", "remove", "add"]))(test)


def edit(release, place, value, act):
    content = json.loads((release.folder / MANIFEST).read_bytes())
    every = [path for path in places(content) if path]
    *way, last = every[place % len(every)]
    inner = content
    for key in way:
        inner = inner[key]
    if act == "replace":
        inner[last] = value
    elif act == "remove":
        del inner[last]
    elif isinstance(inner, dict):
        inner["more"] = value
    else:
        inner.append(value)
    checked(release, json.dumps(content).encode())


@FEW
@edits
def test_an_edited_manifest_is_read_or_refused(release, place, value, act):
    edit(release, place, value, act)


@pytest.mark.slow
@MANY
@edits
def test_a_thousand_edited_manifests(release, place, value, act):
    edit(release, place, value, act)


@pytest.mark.parametrize("rows", [857_626, 10**12, 10**400, 0, -1])
def test_a_unit_of_absurdly_many_rows_is_refused_by_name(release, rows):
    content = json.loads((release.folder / MANIFEST).read_bytes())
    content["privacy"]["max_rows_per_unit"] = rows
    checked(release, json.dumps(content).encode())


@FEW
@given(st.binary(max_size=200))
def test_any_bytes_are_a_manifest_or_refused(release, content):
    checked(release, content)


def test_the_schemas_of_these_tests_are_read():
    assert tomllib.loads(SCHEMA.to_toml())["name"] == "people"
