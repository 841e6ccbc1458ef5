"""The process that holds records: closed to others, silent, gone in time, and with one way out of it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from noisewise.cli import own_process
from noisewise.cli.own_process import OwnProcess, _answer, _error, _question
from noisewise.confidential.boundary import private_files
from noisewise.errors import BudgetError, DataError, SchemaError
from noisewise.progress import silent
from small_study import small_study

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what is asked of the kernel is Linux's")

STATE = textwrap.dedent("""
    import ctypes, json, os, resource, signal, sys
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    os.umask(0)
    if sys.argv[1] == "sealed":
        from noisewise.confidential.boundary import seal_process
        seal_process()
    state = {
        "umask": os.umask(0),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
        "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
        "ctrl-c": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    }
    print(json.dumps(state), flush=True)
""")


def state(how):
    done = subprocess.run([sys.executable, "-c", STATE, how], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


@LINUX
def test_a_sealed_process_leaves_no_core_admits_no_debugger_and_writes_for_its_owner_only():
    assert state("sealed") == {"umask": 0o077, "core": 0, "dumpable": 0, "ctrl-c": True}
    open_one = state("open")  # the twin: the same process, not sealed
    assert open_one["umask"] == 0
    assert open_one["dumpable"] == 1


PARENT = textwrap.dedent("""
    import subprocess, sys
    child = subprocess.Popen([sys.executable, "-c",
        "from noisewise.confidential.boundary import seal_process as s; s(); print('ready', flush=True);"
        "import time; time.sleep(60)"], stdout=subprocess.PIPE)
    child.stdout.readline()
    print(child.pid, flush=True)
    child.wait()
""")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@LINUX
def test_it_dies_with_the_one_that_started_it():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert alive(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_files_are_private_only_meanwhile_and_one_thread_at_a_time(tmp_path):
    before = os.umask(0o022)
    try:
        inside = threading.Event()

        def other():
            with private_files():
                (tmp_path / "other").touch()
            inside.set()

        with private_files():
            thread = threading.Thread(target=other)
            thread.start()
            (tmp_path / "mine").touch()
            assert not inside.wait(0.05)
        thread.join()
        (tmp_path / "after").touch()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"mine": 0o600, "other": 0o600, "after": 0o644}


# The one way out


def asked(tmp_path):
    study = small_study(tmp_path)
    return json.loads(_question(study, study.ledger(tmp_path / "l")))


def test_it_answers_with_a_hash_and_the_counts_lie_in_the_ledger(tmp_path):
    study = small_study(tmp_path)
    ledger = study.ledger(tmp_path / "l")
    noisy = OwnProcess(silent)(study, ledger)

    assert set(_answer(json.loads(_question(study, ledger)), silent)) == {"hash"}
    assert noisy.hash == ledger.entries()[-1].content["hash"]


@pytest.mark.parametrize(
    ("raised", "answer"),
    [
        (DataError("value-outside-schema", "y"), {"error": "DataError", "code": "value-outside-schema", "column": "y"}),
        (BudgetError("too much"), {"error": "BudgetError", "message": "too much"}),
        (ValueError("CANARY"), {"error": "DataError", "code": "process-ended"}),
        (MemoryError("CANARY"), {"error": "DataError", "code": "process-ended"}),
        (SystemExit("CANARY"), {"error": "DataError", "code": "process-ended"}),
        (KeyboardInterrupt("CANARY"), {"error": "DataError", "code": "process-ended"}),
    ],
)
def test_whatever_happens_inside_only_codes_and_public_words_come_out(tmp_path, monkeypatch, raised, answer):
    def failing(*_):
        raise raised

    question = asked(tmp_path)
    monkeypatch.setattr("noisewise.study.measured", failing)
    assert _answer(question, silent) == answer
    again = _error(answer)
    assert "CANARY" not in str(again)
    assert isinstance(again, (DataError, BudgetError))


@pytest.mark.parametrize("answer", [{"error": "os"}, {"error": "annotations"}, {"error": "NoisewiseErrorX"}])
def test_an_answer_that_is_none_of_ours_is_not_trusted(answer):
    assert _error(answer | {"message": "x"}).code == "process-ended"
    assert isinstance(_error({"error": "SchemaError", "message": "x"}), SchemaError)


@pytest.mark.parametrize("code", ["import os; os.abort()", "print('no json')", "import sys; sys.exit(3)"])
def test_a_process_that_crashes_is_an_error_with_a_code(tmp_path, monkeypatch, code):
    study = small_study(tmp_path)
    original = subprocess.Popen

    def other(command, **options):
        return original([command[0], "-c", code], **options)

    monkeypatch.setattr(own_process.subprocess, "Popen", other)
    with pytest.raises(DataError) as caught:
        OwnProcess(silent)(study, study.ledger(tmp_path / "l"))
    assert caught.value.code == "process-ended"


LOUD = """
import os, sys
import noisewise.study as study
original = study.measured
def measured(*arguments):
    print("CANARY"); print("CANARY", file=sys.stderr); os.write(1, b"CANARY"); os.write(2, b"CANARY")
    os.system("echo CANARY; echo CANARY >&2; touch loud/spoke")
    return original(*arguments)
study.measured = measured
"""


def test_what_libraries_print_there_goes_nowhere(tmp_path):
    small_study(tmp_path)
    (tmp_path / "loud").mkdir()
    (tmp_path / "loud" / "sitecustomize.py").write_text(LOUD)
    path = os.pathsep.join([str(tmp_path / "loud"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "noisewise", "measure", "study.toml"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=False, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "loud" / "spoke").exists()
    assert "CANARY" not in done.stdout + done.stderr
