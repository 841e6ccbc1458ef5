"""A holder's process may die at any moment, its disk may be full or closed: no draw without a debit, none twice."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from dying import POINTS, on_disk
from holder import every_byte, measure_here, random_table, write_study

from noisewise.errors import BudgetError, NoisewiseError
from noisewise.privacy.noise import OpenDPNoise

HERE = Path(__file__).parent


def dying(folder, action, times):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, HERE / "dying.py", folder, action, str(times)],
        env=environment, capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def all_well(results):
    assert [result["wrong"] for result in results if result["wrong"]] == []
    assert {tuple(result["kinds"]) for result in results} == {("opened", "debited", "measured")}


def test_killed_at_every_point_that_matters(tmp_path):
    results = dying(tmp_path, "points", 0)

    assert len(results) == len(POINTS)
    assert all(result["codes"] == [-9, 0] for result in results)
    all_well(results)


def test_killed_at_random_moments(tmp_path):
    all_well(dying(tmp_path, "random", 4))


@pytest.mark.slow
def test_killed_at_two_hundred_random_moments(tmp_path, capsys):
    results = dying(tmp_path, "random", 200)
    all_well(results)
    with capsys.disabled():
        reached = dict(Counter(code for result in results for code in result["codes"][:-1]))
        print(f"\nkills and what they met: {reached}; results seen before: {sum(r['seen'] for r in results)}")


def test_the_test_sees_a_debit_that_comes_late_and_a_second_draw(tmp_path):
    late, forgetful = dying(tmp_path, "twins", 0)

    assert "noisy counts without a debit" in late["wrong"]
    assert "drawn again after it was seen" in forgetful["wrong"] or "the release is not" in str(forgetful["wrong"])


@pytest.mark.parametrize("times", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_a_disk_that_is_full_after_so_many_bytes(tmp_path, times):
    """Files may not grow beyond 0, 1/times, 2/times, … of 40 kB: the ledger is 16 kB, so every write fails once."""
    results = dying(tmp_path, "disk", times)

    all_well(results)
    assert 70 in {result["codes"][0] for result in results}  # some did fail, with an error of their own
    for result in results:
        if result["codes"][0] == 70:
            assert result["said"].split(":")[0] in ("BudgetError", "ReleaseError", "DataError", "OSError")


@pytest.fixture
def disk(tmp_path):
    """A file system of its own, of 128 kB, with a study on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder]
    if not shutil.which("mount") or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        write_study(folder, random_table(1, rows=10))
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_really_full(disk):
    used = os.open(disk / "used", os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(used, b"x" * 512)
    except OSError:
        os.close(used)
    with pytest.raises(NoisewiseError) as caught:
        measure_here(disk)

    assert "Traceback" not in str(caught.value)
    assert on_disk(disk)[1] is None
    (disk / "used").unlink()
    measure_here(disk)
    assert [kind for _, kind, _ in on_disk(disk)[0]] == ["opened", "debited", "measured"]


def test_a_folder_that_may_not_be_written(disk, monkeypatch):
    """Nothing is drawn, nothing is written, and the error says where."""
    drawn = []
    monkeypatch.setattr(OpenDPNoise, "gaussian", lambda *arguments: drawn.append(arguments))
    before = every_byte(disk)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)

    with pytest.raises(BudgetError, match=r"noisewise\.ledger"):
        measure_here(disk)
    assert drawn == []
    assert every_byte(disk) == before
