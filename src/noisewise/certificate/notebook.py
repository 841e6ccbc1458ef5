"""The repeats that are done, kept in a file while others are under way: a killed run goes on where it was."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """A file of lines: the first says what is being certified, each other is one repeat."""

    path: Path
    """The file."""
    key: str
    """What is being certified; a file with another key is begun afresh."""

    def read(self) -> list[dict[str, Any]]:
        """The repeats in the file; a line that was cut off by a kill is left out."""
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        parsed = [_parsed(line) for line in lines]
        if not parsed or parsed[0] != {"key": self.key}:
            return []
        return [record for record in parsed[1:] if record is not None and "number" in record]

    def begin(self, kept: list[dict[str, Any]]) -> None:
        """Write the file anew with what is kept."""
        lines = [json.dumps({"key": self.key}), *(json.dumps(record, allow_nan=False) for record in kept)]
        temporary = self.path.with_name(self.path.name + ".partial")
        temporary.write_text("\n".join(lines) + "\n", "utf-8")
        temporary.replace(self.path)

    def add(self, record: dict[str, Any]) -> None:
        """Add a repeat."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, allow_nan=False) + "\n")

    def close(self) -> None:
        """Remove the file: everything in it is in the certificate."""
        self.path.unlink(missing_ok=True)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None
