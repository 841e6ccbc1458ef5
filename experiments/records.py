"""Results on disk: every finished repeat is a line, so that a killed run goes on where it stopped."""

import csv
import json
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One estimate of one method in one repeat."""

    method: str
    """The method."""
    epsilon: float
    """Its budget."""
    repeat: int
    """Number of the repeat."""
    term: str
    """The estimand."""
    truth: float
    """Its true value."""
    estimate: float
    """What the method said."""
    stderr: float
    """Its standard error."""
    dof: float
    """Degrees of freedom of its interval; infinite for a normal one."""
    seconds: float
    """Time of the whole repeat of this method."""


class Records:
    """Estimates in a file of JSON lines. A half-written last line, left by a kill, is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Estimate]:
        """All estimates so far."""
        if not self.path.exists():
            return []
        return [Estimate(**row) for line in self._whole_lines() for row in json.loads(line)]

    def done(self) -> set[tuple[str, float, int]]:
        """Which (method, ε, repeat) are finished."""
        return {(e.method, e.epsilon, e.repeat) for e in self.read()}

    def add(self, estimates: Iterable[Estimate]) -> None:
        """Append one finished repeat."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            whole = "".join(self._whole_lines())
            if len(whole) < self.path.stat().st_size:
                self.path.write_text(whole, "utf-8")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([asdict(estimate) for estimate in estimates]) + "\n")

    def _whole_lines(self) -> list[str]:
        lines = self.path.read_text("utf-8").splitlines(keepends=True)
        return [line for line in lines if line.endswith("\n")]


def write_table(path: Path, rows: list[dict[str, object]]) -> None:
    """A small CSV, with a note beside it of what made it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    path.with_suffix(".made.json").write_text(json.dumps(provenance(), indent=1) + "\n", "utf-8")


def provenance() -> dict[str, object]:
    """The command, the versions and the kind of machine behind a table."""
    packages = ("noisewise", "jax", "numpy", "opendp", "mbi")
    return {
        "command": " ".join(["python -m experiments", *sys.argv[1:]]),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": f"{platform.system()} {platform.machine()}, 2 shared cores",
    }
