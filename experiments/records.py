"""Results on disk: every finished run is a line, so that a killed experiment goes on where it stopped."""

import csv
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from experiments.readings import Reading

REPOSITORY = Path(__file__).parent.parent


@dataclass(frozen=True, kw_only=True)
class Run:
    """One method, once, at one budget."""

    method: str
    """The method."""
    settings: str
    """The method with all its settings: a run with other settings is another run."""
    epsilon: float
    """Its budget."""
    repeat: int
    """Number of the repeat."""
    code: str
    """The commit of the code that ran."""
    seconds: dict[str, float]
    """Time of making the datasets, what the processor worked for it, and time of analysing them."""
    numbers: dict[str, float] = field(default_factory=dict)
    """What the method says about itself, such as R-hat."""
    distances: dict[str, float] = field(default_factory=dict)
    """Mean total-variation distance of marginals."""
    readings: tuple[Reading, ...] = ()
    """What the analyses said."""


class Records:
    """Runs in a file of JSON lines. A half-written last line, left by a kill, is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Run]:
        """All runs so far; of runs that were done twice the last."""
        if not self.path.exists():
            return []
        runs = [_run(json.loads(line)) for line in self._whole_lines()]
        return list({(run.method, run.epsilon, run.repeat): run for run in runs}.values())

    def done(self) -> set[tuple[str, float, int]]:
        """Which (settings, ε, repeat) are finished."""
        return {(run.settings, run.epsilon, run.repeat) for run in self.read()}

    def add(self, run: Run) -> None:
        """Append one finished run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._last_byte() not in (b"", b"\n"):
            self.path.write_text("".join(self._whole_lines()), "utf-8")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(run), separators=(",", ":")) + "\n")

    def _last_byte(self) -> bytes:
        if not self.path.exists() or self.path.stat().st_size == 0:
            return b""
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1)

    def _whole_lines(self) -> list[str]:
        lines = self.path.read_text("utf-8").splitlines(keepends=True)
        return [line for line in lines if line.endswith("\n")]


def _run(content: dict) -> Run:
    readings = tuple(
        Reading(**(reading | {"ends": tuple(reading["ends"]) if reading["ends"] else None}))
        for reading in content.pop("readings")
    )
    return Run(readings=readings, **content)


def commit() -> str:
    """The commit of this code; with "+changes" where files differ from it."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--exclude=*", "--dirty=+changes"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def write_table(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """A small CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def write_provenance(path: Path, runs: Iterable[Run], kept: Sequence[tuple[str, str]] = ()) -> None:
    """What made the tables and pictures of an experiment: code, seed, versions, machine.

    Of (method, ε) in `kept` the rows come from earlier runs; the notes on them go on under "before".
    """
    from experiments.experiment import SEED

    runs = list(runs)
    packages = ("noisewise", "jax", "blackjax", "numpy", "opendp", "mbi", "optax")
    content: dict[str, object] = {
        "command": f"python -m experiments {' '.join(sys.argv[1:])}",
        "seed": SEED,
        "runs": len(runs),
        "code": sorted({run.code for run in runs}),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    if kept and path.exists():
        earlier = json.loads(path.read_text("utf-8"))
        history = earlier.pop("before", [])
        earlier.pop("kept", None)
        content["kept"] = [f"{method}, ε = {epsilon}" for method, epsilon in kept]
        content["before"] = history if earlier["code"] == content["code"] else [*history, earlier]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
