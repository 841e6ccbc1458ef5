"""Measuring in a process of its own: the only one of a command that ever holds a record.

It reads a study from its standard input, opens the table, and answers with one line: the hash of noisy counts that
lie in the ledger, or an error that has a code or speaks of public things. Whatever libraries print there goes nowhere,
it leaves no core dump, and it is gone before anything else is computed: no later defect, trace or debugger can find a
record in the process that fits, draws and reports.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from noisewise import errors
from noisewise.errors import BudgetError, DataError, NoisewiseError
from noisewise.noisy_counts import NoisyCounts
from noisewise.privacy.ledger import Ledger
from noisewise.progress import Progress
from noisewise.study import Study

_LOOK_EVERY = 0.1  # seconds between two looks at Ctrl-C


class OwnProcess:
    """Measures a study in a process of its own: give it to `measure_study` as `measuring`."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, study: Study, ledger: Ledger | None) -> NoisyCounts:
        """Start the process, wait for its answer, and take the noisy counts from the ledger."""
        assert ledger is not None  # the commands always keep one
        answer = self._ask(_question(study, ledger))
        if "hash" in answer:
            return ledger.measured(study.load_schema(), answer["hash"])
        raise _error(answer)

    def _ask(self, question: str) -> dict[str, Any]:
        pipe, command = subprocess.PIPE, [sys.executable, "-P", "-m", "noisewise.cli.own_process"]
        with subprocess.Popen(  # noqa: S603 - our own interpreter, and no word of it from outside
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=_environment()
        ) as process:
            try:
                waiting: str | None = question
                while True:
                    try:
                        written, _ = process.communicate(waiting, timeout=_LOOK_EVERY)
                        break
                    except subprocess.TimeoutExpired as still_running:
                        waiting = None
                        self._progress(*_last_step(still_running.stdout))
            except BaseException:
                process.kill()
                raise
        try:
            return dict(json.loads(written.splitlines()[-1]))
        except (ValueError, IndexError):
            return {"error": "DataError", "code": "process-ended"}


def _last_step(said: bytes | None) -> tuple[str, int, int]:
    """How far the counting is, from the last whole line that the process has written so far."""
    lines = (said or b"").split(b"\n")[:-1]
    done = dict(json.loads(lines[-1])).get("done", 0) if lines else 0
    return ("counting", done, 100) if done else ("counting and adding noise", 0, 0)


def _environment() -> dict[str, str]:
    """The same environment, with the code that runs here found first."""
    here = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])}


def _question(study: Study, ledger: Ledger) -> str:
    content = {"study": study.model_dump(mode="json", by_alias=True), "folder": str(study.folder)}
    account = {"path": str(ledger.path), "lineage": ledger.lineage, "occasion": ledger.occasion}
    return json.dumps(content | {"ledger": account})


def _error(answer: dict[str, Any]) -> NoisewiseError:
    if answer["error"] == "DataError":
        return DataError(answer["code"], answer.get("column"))
    kind = getattr(errors, answer["error"], None)
    if isinstance(kind, type) and issubclass(kind, NoisewiseError):
        return kind(answer["message"])
    return DataError("process-ended")


def _answer(question: dict[str, Any], progress: Progress) -> dict[str, Any]:
    """What the process says: every path out of it is here."""
    from noisewise.study import Study, measured

    try:
        study = Study.model_validate({**question["study"], "folder": question["folder"]})
        return {"hash": measured(study, Ledger(**question["ledger"]), progress).hash}
    except DataError as error:
        return {"error": "DataError", "code": error.code, "column": error.column}
    except NoisewiseError as error:
        return {"error": type(error).__name__, "message": str(error)}
    except ModuleNotFoundError as error:
        return {"error": BudgetError.__name__, "message": f"Measuring needs {error.name}: install noisewise[holder]."}
    except BaseException:  # whatever it is, it may quote a record
        return {"error": "DataError", "code": "process-ended"}


def main() -> None:
    """Be the process."""
    from noisewise.confidential.boundary import seal_process

    seal_process()
    way_out = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def progress(_: str, done: int, total: int) -> None:
        print(json.dumps({"done": done * 100 // max(total, 1)}), file=way_out, flush=True)

    print(json.dumps(_answer(json.load(sys.stdin), progress)), file=way_out, flush=True)


if __name__ == "__main__":
    main()
