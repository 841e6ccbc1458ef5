"""Tables that stay in PostgreSQL: found, counted by the server, and nothing said that should not be."""

import contextlib
import os
import traceback

import pyarrow as pa
import pytest

from noisewise.confidential import sources
from noisewise.confidential.counts import count
from noisewise.errors import DataError, StudyError
from noisewise.privacy.ledger import lineage_of
from noisewise.schema import Categorical, Numeric, Schema
from noisewise.study import Study
from small_study import small_study

SCHEMA = Schema(
    column=(
        Categorical(name="ward", levels=("north", "south"), missing="category"),
        Numeric(name="Größe", edges=(0, 2, 5)),
    )
)
PEOPLE = pa.table({"ward": ["north", "south", None], "Größe": [1, 2, 3]})
EXPECTED = [[1, 0], [0, 1], [0, 1]]


def counted(source):
    return count(source, SCHEMA, [("ward", "Größe")]).tables["ward", "Größe"].tolist()


@pytest.fixture
def people(postgres):
    return postgres.load("People", PEOPLE)


def test_a_table_is_counted_by_its_server(postgres, people):
    assert counted(people) == EXPECTED
    assert counted(f"{postgres.address}?table=People") == EXPECTED
    assert counted(f"{postgres.address}?connect_timeout=3&table=public.People") == EXPECTED
    assert counted(people.replace("postgres://", "postgresql://").replace("::", "::public.")) == EXPECTED


def test_views_are_tables_too(postgres, people):
    with postgres.connect() as connection:
        connection.execute('CREATE OR REPLACE VIEW adults AS SELECT * FROM "People" WHERE "Größe" > 1')
    assert counted(f"{postgres.address}::adults") == [[0, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda a: a + "s", "table-not-found"),
        (lambda a: a.partition("::")[0], "table-not-found"),
        (lambda a: a.replace("::", "::private."), "table-not-found"),
        (lambda a: a.replace("tester@", "stranger@"), "server-not-reached"),
        (lambda a: a.replace("127.0.0.1", "127.0.0.2"), "server-not-reached"),
        (lambda a: a.replace("postgres://", "mysql://"), "source-not-supported"),
        (lambda a: a.replace("tester@", "tester:canary@"), "password-in-source"),
        (lambda a: a.replace("::", "?password=canary::"), "password-in-source"),
    ],
)
def test_what_goes_wrong_is_a_code(people, change, code):
    with pytest.raises(DataError) as caught:
        counted(change(people))
    assert caught.value.code == code


@pytest.mark.parametrize("address", ["postgres://h/d::t", "sc://h:1/::t", "spark:///::t"])
def test_a_library_that_is_not_there_is_named(monkeypatch, address):
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"noisewise\[postgres\]") as caught:
        counted(address)
    assert caught.value.code == "library-missing"


def test_nothing_that_the_server_says_is_passed_on(postgres):
    """It quotes values, users and addresses; of a value that cannot be converted only the code is left."""
    address = postgres.load("odd", pa.table({"ward": ["north", "CANARY"], "Größe": [1, 1]}))
    with postgres.connect() as connection:
        connection.execute('CREATE OR REPLACE VIEW broken AS SELECT ward, ward::int AS "Größe" FROM odd')
    for source, code in ((address, "value-outside-schema"), (f"{postgres.address}::broken", "engine-failed")):
        with pytest.raises(DataError) as caught:
            counted(source)
        said = "".join(traceback.format_exception(caught.value))
        assert caught.value.code == code
        assert "CANARY" not in said
        assert postgres.password not in said
        assert "127.0.0.1" not in said


def test_a_session_changes_nothing(postgres, people):
    with postgres.connect() as connection:
        connection.execute("CREATE OR REPLACE FUNCTION sneak() RETURNS text LANGUAGE sql VOLATILE AS "
                           "$$ INSERT INTO \"People\" VALUES ('north', 1) RETURNING ward $$")  # fmt: skip
        connection.execute('CREATE OR REPLACE VIEW sneaky AS SELECT sneak() AS ward, "Größe" FROM "People"')
    with pytest.raises(DataError) as caught:
        counted(f"{postgres.address}::sneaky")
    assert caught.value.code == "engine-failed"
    assert counted(people) == EXPECTED


def test_no_connection_stays_open(postgres, people):
    for source in (people, people + "s"):
        with contextlib.suppress(DataError):
            counted(source)
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'noisewise'"
    with postgres.connect() as connection:
        assert connection.execute(query).fetchone() == (0,)


def test_a_study_reads_from_a_server(postgres, people, tmp_path):
    study = small_study(tmp_path).reading(people)
    assert study.source() == people
    assert lineage_of(study.source(), tmp_path) == people.replace("tester@", "")
    assert os.environ["PGPASSFILE"] == postgres.environment["PGPASSFILE"]


@pytest.mark.parametrize(
    "address", ["postgres://u:canary@h/d::t", "sc://h:1/;token=canary::t", "x://h/?PassWord=canary"]
)
def test_a_study_file_never_holds_a_password(tmp_path, address):
    text = (tmp_path / "study.toml").write_text
    small_study(tmp_path)
    text((tmp_path / "study.toml").read_text().replace("table.csv", address))
    for attempt in (lambda: Study.load(tmp_path / "study.toml"), lambda: small_study(tmp_path).reading(address)):
        with pytest.raises(StudyError, match="Take it out") as caught:
            attempt()
        assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_lineages_are_named_after_the_place_alone(tmp_path):
    lineage = "postgres://host:5433/base::people"
    assert lineage_of("postgres://user@host:5433/base::people", tmp_path) == lineage
    assert lineage_of("postgres://user@host:5433/base?table=people&sslmode=require", tmp_path) == lineage
    assert lineage_of("sc://host:15002/;user_id=me::db.people", tmp_path) == "sc://host:15002::db.people"
    assert lineage_of("spark:///::/data/people.parquet", tmp_path) == "spark://::/data/people.parquet"
    assert lineage_of("postgres://[::1]:5432/base::t", tmp_path) == "postgres://[::1]:5432/base::t"
