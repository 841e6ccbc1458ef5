"""With the noisy counts fixed, whatever else is in the table changes no byte, no line, no error and no exit code."""

import io
import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from holder import Fixed, every_byte, measure_here, random_table, write_study

from noisewise.artifacts import Release
from noisewise.errors import DataError, NoisewiseError

HERE = Path(__file__).parent


def ledger_content(path):
    """What a ledger says; its file's pages may hold the same in another order."""
    if not path.exists():
        return None
    with sqlite3.connect(path) as connection:
        found = [connection.execute(f"SELECT * FROM {t} ORDER BY 1, 2").fetchall() for t in ("entry", "counts")]
    connection.close()
    return found, path.stat().st_size


def seen(folder, table, measuring=measure_here):
    """Everything that an onlooker sees of a measurement."""
    write_study(folder, table)
    before = {*every_byte(folder)}
    said, logged = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stdout(said), redirect_stderr(said):
            try:
                measuring(folder)
                ended = "done"
            except NoisewiseError as error:
                ended = repr((type(error).__name__, str(error), error.exit_code))
    finally:
        logging.getLogger().removeHandler(handler)
    written = {name: content for name, content in every_byte(folder).items() if name not in before}
    ledger = ledger_content(folder / "noisewise.ledger")
    return ended, said.getvalue(), logged.getvalue(), written, ledger


def differing(tmp_path, pairs, measuring=measure_here, spoiled=lambda table, number: table):
    """How many of the pairs of tables an onlooker tells apart."""
    count = 0
    for number in range(pairs):
        sights = []
        for side in (0, 1):
            table = spoiled(random_table(2 * number + side + 1), number)
            where = tmp_path / f"{number}-{side}" / "holder"  # the same path would be the same lineage's ledger
            sight = seen(where, table, measuring)
            sights.append(repr(sight).replace(str(where), "HOLDER"))
        count += sights[0] != sights[1]
    return count


@pytest.fixture
def _fixed(monkeypatch):
    monkeypatch.setattr("noisewise.privacy.measure.OpenDPNoise", Fixed)


def outside(table, number):
    """A table with some value that its schema does not know, in a column that allows no others."""
    values = table["c"].to_pylist()
    values[number % len(values)] = f"CANARY of {table['name'][0]}"
    return table.set_column(table.column_names.index("c"), "c", pa.array(values))


@pytest.mark.usefixtures("_fixed")
def test_tables_with_the_same_noisy_counts_look_the_same(tmp_path):
    assert differing(tmp_path, 5) == 0
    assert differing(tmp_path / "bad", 3, spoiled=outside) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("_fixed")
def test_two_hundred_pairs_of_tables_look_the_same(tmp_path):
    assert differing(tmp_path, 200) == 0
    assert differing(tmp_path / "bad", 50, spoiled=outside) == 0


def leaking_value(folder):
    """A twin whose error quotes what it found."""
    try:
        return measure_here(folder)
    except DataError as error:
        table = (folder / "table.csv").read_text()
        raise NoisewiseError(str(error) + table[table.index("CANARY") :][:20]) from None


def leaking_order(folder):
    """A twin that writes the time-honoured harmless detail: a hash of the source."""
    release = measure_here(folder)
    (release.folder / "source.txt").write_text(str(hash((folder / "table.csv").read_bytes())))
    return release


def leaking_size(folder):
    """A twin that says how many levels it met."""
    import pyarrow.csv

    print(len(set(pyarrow.csv.read_csv(folder / "table.csv")["a"].to_pylist())), "levels found")
    return measure_here(folder)


@pytest.mark.usefixtures("_fixed")
def test_the_test_sees_a_quoted_value_a_hash_and_a_number(tmp_path):
    assert differing(tmp_path / "v", 2, leaking_value, outside) == 2
    assert differing(tmp_path / "o", 1, leaking_order) == 1
    assert differing(tmp_path / "s", 3, leaking_size) > 0


class LeakingNoise(Fixed):
    """A twin whose noise is the right size and still tells a count's parity."""

    def gaussian(self, counts, stddev, squared_distance, rho):
        values = super().gaussian(counts, stddev, squared_distance, rho)
        values.flat[0] += int(counts.flat[0]) % 2
        return values


def test_the_test_sees_a_single_bit(tmp_path, monkeypatch):
    monkeypatch.setattr("noisewise.privacy.measure.OpenDPNoise", LeakingNoise)
    assert differing(tmp_path, 5) > 0


def command(folder, *words):
    """A command in a process of its own, whose measuring process (one more) finds `Fixed` in place of noise."""
    path = os.pathsep.join([str(HERE / "fixed"), str(HERE), str(HERE.parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "TMPDIR": str(folder), "HOME": str(folder), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "noisewise", *words], cwd=folder, env=environment, capture_output=True, check=False
    )
    said = (text.replace(str(folder).encode(), b"HOLDER") for text in (done.stdout, done.stderr))
    return done.returncode, *said


def run_of(folder, table, action):
    write_study(folder, table, select="")
    before = {*every_byte(folder)}
    result = command(folder, action, "study.toml")
    files = {name: content for name, content in every_byte(folder).items() if name not in before}
    return result, {name: content for name, content in files.items() if not name.endswith(".ledger")}


def test_the_commands_themselves_look_the_same_to_the_last_byte(tmp_path):
    """`measure` as a person runs it, with both processes; its ledger is compared above."""
    first, second = (run_of(tmp_path / str(n), random_table(n), "measure") for n in (1, 4))

    assert first[0][0] == 0, first[0][2]
    assert first == second
    counts = Release(tmp_path / "1" / "study-release").noisy_counts()
    assert np.array_equal(counts.measurements[0].values.ravel()[:3], [0, 3, 6])  # the fixed ones, indeed


@pytest.mark.slow
def test_whole_runs_look_the_same_to_the_last_byte(tmp_path):
    for number in range(5):
        tables = (random_table(10 * number + side) for side in (1, 4))
        first, second = (run_of(tmp_path / f"{number}-{side}", t, "run") for side, t in enumerate(tables))
        assert first == second
