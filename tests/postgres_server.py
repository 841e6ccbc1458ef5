"""A PostgreSQL server for tests: on loopback, in a temporary folder, with a password, gone afterwards."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pyarrow as pa
from psycopg import sql

_TYPES = {
    pa.string(): "text",
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", tz="UTC"): "timestamptz",
    pa.decimal128(20, 4): "numeric(20, 4)",
}


@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    """A running server. Its user is a superuser; the password is in the file that `environment` points to."""

    address: str
    """Where the database is, as `[data] source` has it, without a table and without a password."""
    password: str
    """The password."""
    environment: Mapping[str, str]
    """What a process needs in its environment to be let in; set in this one while the server runs."""

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.address, autocommit=True)

    def load(self, name: str, table: pa.Table, types: Mapping[str, str] | None = None) -> str:
        """Write an Arrow table into a table of this name, and give its address."""
        kinds = {field.name: (types or {}).get(field.name) or _TYPES[field.type] for field in table.schema}
        columns = [sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(kind)) for n, kind in kinds.items()]
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier(name)))
            cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), sql.SQL(", ").join(columns)))
            with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
        return f"{self.address}::{name}"


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl: on the path, or where Debian keeps the newest."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


@contextmanager
def running_server(programs: Path) -> Iterator[PostgresServer]:
    """Start a server of its own; it refuses to run as root, who becomes the user "postgres" for it."""
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="noisewise-postgres-", dir="/tmp"))
    password = secrets.token_hex(16)
    secret = folder / "password"
    secret.write_text(password)
    if user is not None:
        account = pwd.getpwnam(user)
        for path in (folder, secret):
            os.chown(path, account.pw_uid, account.pw_gid)
    port = _free_port()
    data, log = folder / "data", folder / "log"

    def run(*command: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        subprocess.run([str(programs / command[0]), *command[1:]], user=user, cwd=folder, check=True, **quiet)

    settings = f"-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    run("initdb", f"--pgdata={data}", "--username=tester", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync",
        "--encoding=UTF8", "--locale=C.UTF-8")  # fmt: skip
    before = os.environ.get("PGPASSFILE")
    try:
        run("pg_ctl", "start", f"--pgdata={data}", f"--log={log}", "--wait", f"--options={settings}")
        passwords = Path(tempfile.mkdtemp(prefix="noisewise-pgpass-", dir="/tmp")) / "pgpass"
        passwords.touch(mode=0o600)
        passwords.write_text(f"127.0.0.1:{port}:*:tester:{password}\n")
        os.environ["PGPASSFILE"] = str(passwords)
        yield PostgresServer(
            address=f"postgres://tester@127.0.0.1:{port}/postgres",
            password=password,
            environment={"PGPASSFILE": str(passwords)},
        )
    finally:
        os.environ.pop("PGPASSFILE", None)
        if before is not None:
            os.environ["PGPASSFILE"] = before
        run("pg_ctl", "stop", f"--pgdata={data}", "--mode=immediate", "--wait")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(passwords.parent, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
