"""Tables in PostgreSQL, counted by the server: "postgres://user@host:5432/database::schema.table".

Who connects is told by the address, the environment (PGUSER, PGSERVICE, …) and the password file, as for `psql`; a
password in the address is refused. The session is read-only and sees one state of the table from its first query on.
"""

from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from noisewise.confidential.addresses import split_table
from noisewise.confidential.source import Source
from noisewise.confidential.withheld import withheld
from noisewise.errors import DataError


def open_postgres(address: str) -> Source:
    """Open a table of a PostgreSQL server; it is named after "::" or as `table` in the query part."""
    server, table = _parts(address)
    if not table:
        raise DataError("table-not-found")
    connection = withheld(lambda: _connected(server), "server-not-reached")
    try:
        found = withheld(lambda: _found(connection, table), "engine-failed")
    except DataError:
        connection.close()
        raise
    return Source(table=found, names=tuple(found.columns), close=lambda: _close(connection))


def _parts(address: str) -> tuple[str, str]:
    """The server's address as libpq takes it, and the table."""
    server, table = split_table(address)
    parts = urlsplit(server)
    query = parse_qsl(parts.query, keep_blank_values=True)
    named = [value for key, value in query if key == "table"]
    others = urlencode([(key, value) for key, value in query if key != "table"])
    return urlunsplit(parts._replace(query=others)), table or "".join(named[:1])


def _connected(server: str) -> Any:
    import psycopg

    connection = psycopg.connect(server, application_name="noisewise", connect_timeout=20)
    connection.execute("SET jit = off")  # compiling what is long to write and quick to run takes longest
    connection.commit()
    connection.read_only = True
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return connection


def _found(connection: Any, table: str) -> Any:
    import ibis

    schema, name = _place(connection, table)
    return ibis.postgres.from_connection(connection).table(name, database=schema)


def _place(connection: Any, table: str) -> tuple[str, str]:
    """Schema and name of a table or view: as "schema.table", or found on the search path."""
    schema, dot, name = table.partition(".")
    wanted = "quote_ident(%s) || '.' || quote_ident(%s)" if dot else "quote_ident(%s)"
    query = (
        f"SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.oid = to_regclass({wanted})"
    )
    found = connection.execute(query, (schema, name) if dot else (table,)).fetchone()
    if found is None:
        raise DataError("table-not-found")
    return str(found[0]), str(found[1])


def _close(connection: Any) -> None:
    with suppress(Exception):  # what is said when hanging up is of no use to anybody
        connection.close()
