"""An append-only file of entries, each sealed by a hash over all before it; SQLite keeps it whole through crashes.

A commit returns only when the disk has the entry (`synchronous = EXTRA`: `FULL`, and the folder as well). Triggers
refuse to change or delete an entry. Somebody who edits the file all the same breaks the seals, unless they rewrite
every seal after it; then the head no longer is the one that was noted elsewhere.
"""

import datetime
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisewise.errors import BudgetError

WAIT_SECONDS = 600.0
"""How long one process waits for another that is drawing."""

_APPLICATION = 0x6E77_6C67  # "nwlg": marks the SQLite file as a ledger
_VERSION = 1
_FIRST_SEAL = hashlib.sha256(b"noisewise ledger, version 1").hexdigest()
_MADE_OF = (
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, date TEXT NOT NULL, dataset TEXT NOT NULL, kind TEXT NOT NULL, "
    "content TEXT NOT NULL, seal TEXT NOT NULL)",
    "CREATE TABLE counts (entry INTEGER NOT NULL, number INTEGER NOT NULL, cells BLOB NOT NULL, "
    "PRIMARY KEY (entry, number))",
    *(
        f"CREATE TRIGGER no_{act}_of_{table} BEFORE {act} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'what a ledger says is never changed'); END"
        for table in ("entry", "counts")
        for act in ("UPDATE", "DELETE")
    ),
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    number: int
    """1, 2, 3, … without gaps."""
    date: str
    """The day it was written (UTC)."""
    dataset: str
    """The dataset it is about."""
    kind: str
    """"opened", "registered", "debited" or "measured"."""
    content: dict[str, Any]
    """What is said."""
    seal: str
    """SHA-256 over the seal before and everything above."""


class Chain:
    """An open ledger file. Get one from `opened`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    def entries(self) -> list[Entry]:
        """All entries, oldest first; a broken seal is an error."""
        lines = self._connection.execute("SELECT number, date, dataset, kind, content, seal FROM entry ORDER BY number")
        found, before = [], _FIRST_SEAL
        for expected, (number, date, dataset, kind, content, seal) in enumerate(lines.fetchall(), 1):
            if number != expected or seal != _seal(before, number, date, dataset, kind, content):
                raise BudgetError(
                    f"The ledger {self.path} was edited: entry {expected} does not follow from those before it. "
                    "Nothing was drawn. Restore it from a copy, and find out who changed it."
                )
            before = seal
            found.append(_entry(number, date, dataset, kind, content, seal))
        return found

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that nobody else can write beside; what happens in it is kept as a whole or not at all."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def append(self, dataset: str, kind: str, content: dict[str, Any]) -> Entry:
        """Add an entry; call it inside `writing`."""
        known = self.entries()
        number, before = len(known) + 1, known[-1].seal if known else _FIRST_SEAL
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, allow_nan=False)
        seal = _seal(before, number, date, dataset, kind, text)
        self._connection.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", (number, date, dataset, kind, text, seal)
        )
        return _entry(number, date, dataset, kind, text, seal)

    def keep(self, entry: int, blocks: list[bytes]) -> None:
        """Store the counts that belong to an entry; call it inside `writing`."""
        lines = [(entry, number, block) for number, block in enumerate(blocks)]
        self._connection.executemany("INSERT INTO counts VALUES (?, ?, ?)", lines)

    def kept(self, entry: int) -> list[bytes]:
        """The counts that belong to an entry."""
        lines = self._connection.execute("SELECT cells FROM counts WHERE entry = ? ORDER BY number", (entry,))
        return [bytes(block) for (block,) in lines.fetchall()]


@contextmanager
def opened(path: Path, create: bool = True) -> Iterator[Chain]:
    """Open a ledger file, make it where there is none, and close it again."""
    if not create and not path.is_file():
        raise BudgetError(f"There is no ledger at {path}. Check the path, or register a dataset to start one.")
    try:
        connection = _connected(path)
        try:
            yield Chain(path, connection)
        finally:
            connection.close()
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BudgetError(
            f"The ledger {path} cannot be used: {reason}. Nothing was released. Check the path, the permissions and "
            "the space on the disk, or name another file in [privacy] ledger; then run the same command again."
        ) from None


def _connected(path: Path) -> sqlite3.Connection:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)  # for the owner's eyes, whatever the umask
    os.close(descriptor)
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA trusted_schema = OFF")
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            _make_tables(path, connection)
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        if marks != [_APPLICATION, _VERSION]:
            raise BudgetError(f"{path} is not a ledger that this noisewise can read. Name another file.")
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # somebody else's file, or just made
        connection.execute("ROLLBACK")
        return
    for statement in _MADE_OF:
        connection.execute(statement)
    connection.execute("COMMIT")
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _seal(before: str, number: int, date: str, dataset: str, kind: str, content: str) -> str:
    text = json.dumps([before, number, date, dataset, kind, content], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _entry(number: int, date: str, dataset: str, kind: str, content: str, seal: str) -> Entry:
    return Entry(number=number, date=date, dataset=dataset, kind=kind, content=json.loads(content), seal=seal)
