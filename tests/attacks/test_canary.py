"""Tokens that occur nowhere but in the confidential table: none may be found in any byte written, said or raised."""

import io
import logging
import os
import random
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from holder import SELECT, every_byte, measure_here, random_table, write_study

from noisewise.confidential import withheld as withheld_module
from noisewise.errors import NoisewiseError

TOKEN = "Xq7Canary"  # every confidential value holds it, so that one search finds them all


def marked(table):
    """The table with the token in every text that the schema does not name, and in its units."""
    rows = table.num_rows
    tokens = [f"{TOKEN}{i}" for i in range(rows)]
    others = [t if i % 3 else v for i, (t, v) in enumerate(zip(tokens, table["a"].to_pylist(), strict=True))]
    found = table.set_column(0, "a", pa.array(others))
    for name in ("name", "street"):
        found = found.set_column(found.column_names.index(name), name, pa.array(tokens))
    return found


def csv_of(table) -> bytes:
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(table, buffer)
    return buffer.getvalue()


def broken_csv(table, stream) -> bytes:
    """The table as CSV, with something wrong in a random place, the token beside it."""
    content = csv_of(table)
    lines = content.split(b"\n")
    at = stream.randrange(1, len(lines) - 1)
    token = f"{TOKEN}Z".encode()
    breakages = [
        lambda: content.replace(lines[at], lines[at] + b"," + token),  # ragged
        lambda: content.replace(lines[at], lines[at].split(b",")[0]),
        lambda: content.replace(lines[at], b'"' + token + b"," + lines[at]),  # a quote that never ends
        lambda: content.replace(lines[at], lines[at].replace(b"u", token).replace(b"v", token)),  # not in the schema
        lambda: content.replace(lines[at], b"\xff\xfe" + token + b"\x00" + lines[at]),  # no text
        lambda: content.replace(b'"age"', b'"b"', 1),  # a column twice
        lambda: content.replace(b'"c"', token, 1),  # a column gone, its name confidential
        lambda: b"\xef\xbb\xbf" + content.replace(lines[at], token * 20_000),
        lambda: content[: stream.randrange(len(content))] + token,
        lambda: token,
        lambda: b"",
    ]
    return stream.choice(breakages)()


FAILURES = [
    ("noisewise.confidential.counts", "_coded"),
    ("noisewise.confidential.counts", "grouped"),
    ("noisewise.confidential.counts", "_checked"),
    ("noisewise.confidential.counts", "level_codes"),
    ("noisewise.confidential.files", "_engine"),
    ("noisewise.confidential.files", "_csv_header"),
    ("noisewise.confidential.files", "_open_view"),
    ("opendp.measurements", "make_gaussian"),
    ("opendp.measurements", "make_noisy_max"),
]
"""Functions beside records that may fail with whatever they have in hand."""


class QuotingError(Exception):
    """What libraries do: an error that quotes a record, and hangs on to one that quotes another."""


def failing(original, stream):
    """The function, sometimes: else it fails, quoting."""

    def call(*args, **kwargs):
        warnings.warn(f"about {TOKEN}", stacklevel=1)
        logging.getLogger("library").debug("%s", TOKEN)
        if stream.random() < 0.7:
            try:
                raise KeyError(f"{TOKEN}1")
            except KeyError as error:
                kind = stream.choice([QuotingError, ValueError, MemoryError, OSError, UnicodeError, RecursionError])
                raise kind(f"cannot convert {TOKEN}2") from error
        return original(*args, **kwargs)

    return call


def whole_chain(error):
    """All that an error leads to: texts, arguments, notes, causes, contexts, and the trace as it would be printed."""
    parts = [*traceback.format_exception(error)]
    while error is not None:
        parts += [repr(error), repr(error.args), repr(getattr(error, "__notes__", ""))]
        error = error.__cause__ or error.__context__
    return "".join(parts)


def leaks(folder, seed, monkeypatch):
    """Where the token is found after a measurement that was made to fail in a random way."""
    stream = random.Random(seed)
    table, way = marked(random_table(seed + 1, rows=30)), stream.random()
    content, source = csv_of(table), "table.csv"
    if way < 0.5:
        content = broken_csv(table, stream)
    elif way < 0.6:
        buffer = io.BytesIO()
        pq.write_table(table.set_column(3, "c", pa.array([f"{TOKEN}c"] * 30)), buffer)
        content, source = buffer.getvalue()[: stream.choice([10**9, 900, 4])], "table.parquet"
    write_study(folder, content, select=SELECT, source=source)
    before = {*every_byte(folder)}
    said, raised = io.StringIO(), ""
    handler = logging.StreamHandler(said)
    logging.getLogger().addHandler(handler)
    with (
        monkeypatch.context() as patch,
        redirect_stdout(said),
        redirect_stderr(said),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        patch.setattr(tempfile, "tempdir", str(folder))
        if way >= 0.6:
            home, name = stream.choice(FAILURES)
            module = import_module(home)
            patch.setattr(module, name, failing(getattr(module, name), stream))
        try:
            measure_here(folder)
        except NoisewiseError as error:
            raised = whole_chain(error)
    logging.getLogger().removeHandler(handler)
    said.write(" ".join(str(warning.message) for warning in warned))
    written = {name: content for name, content in every_byte(folder).items() if name not in before}
    places = [name for name, content in written.items() if TOKEN.encode() in content or TOKEN in name]
    return places + ["said"] * (TOKEN in said.getvalue()) + ["raised"] * (TOKEN in raised), bool(raised)


def test_no_failure_gives_a_value_away(tmp_path, monkeypatch):
    results = [leaks(tmp_path / str(seed), seed, monkeypatch) for seed in range(10)]

    assert [where for where, _ in results if where] == []
    assert sum(raised for _, raised in results) >= 5  # most of them did fail


@pytest.mark.slow
def test_two_hundred_failures_give_no_value_away(tmp_path, monkeypatch, capsys):
    results = [leaks(tmp_path / str(seed), seed, monkeypatch) for seed in range(1000, 1280)]

    assert [where for where, _ in results if where] == []
    assert sum(raised for _, raised in results) >= 200
    with capsys.disabled():
        print(f"\n{sum(raised for _, raised in results)} failures of {len(results)}")


def test_the_test_finds_an_error_that_is_passed_on(tmp_path, monkeypatch):
    for module in ("counts", "files", "sources"):
        home = import_module(f"noisewise.confidential.{module}")
        if hasattr(home, "withheld"):
            monkeypatch.setattr(home, "withheld", passed_on)
    found = [leaks(tmp_path / str(seed), seed, monkeypatch)[0] for seed in range(8)]

    assert sum("raised" in where for where in found) >= 2


def passed_on(work, code, column=None):
    """A twin of `withheld` that is helpful: it says what went wrong."""
    try:
        return work()
    except NoisewiseError:
        raise
    except Exception as error:
        raise withheld_module.DataError(code, column) from error


def test_the_commands_give_nothing_away_either(tmp_path):
    """As people run them: good and bad tables, everything that lies about afterwards, and a crash of the process."""
    for number, content in enumerate(
        (csv_of(marked(random_table(3))), broken_csv(marked(random_table(3)), random.Random(2)))
    ):
        folder = tmp_path / str(number)
        write_study(folder, content, select="")
        before = {*every_byte(folder)}
        environment = os.environ | {"TMPDIR": str(folder), "HOME": str(folder), "PYTHONFAULTHANDLER": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "noisewise", "measure", "study.toml"],
            cwd=folder, env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, check=False,
        )  # fmt: skip
        written = {name: content for name, content in every_byte(folder).items() if name not in before}

        assert TOKEN.encode() not in done.stdout + done.stderr
        assert [name for name, content in written.items() if TOKEN.encode() in content] == []
        assert {path.stat().st_mode & 0o077 for path in folder.glob("*.ledger")} <= {0}
