"""An imported schema before a person has completed it: columns, and what has to be added to each by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tomli_w

EDGES = "edges: metadata name no bins. Write ascending edges from public knowledge, the outermost included."
LEVELS = "levels: metadata name no values. Write every value that may occur, from public knowledge."
PERIODS = "first, last and period: metadata name no range. Write them from public knowledge."


@dataclass(frozen=True, kw_only=True)
class ImportedColumn:
    """One column: the keys that could be taken over, and what is missing or was guessed."""

    name: str
    """Its name."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the schema, `type` among them."""
    by_hand: tuple[str, ...] = ()
    """What a person has to add or check, one sentence each."""

    @property
    def text(self) -> str:
        """The column in TOML, with what is to be done beside it."""
        notes = "".join(f"# by hand: {note}\n" for note in self.by_hand)
        return f"[[column]]\n{notes}{tomli_w.dumps({'name': self.name, **self.keys})}"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What was imported: columns, and what was left out or holds for the whole table."""

    source: str
    """The kind of metadata, in words."""
    name: str
    """A name for the table."""
    columns: tuple[ImportedColumn, ...]
    """The columns, in their order."""
    notes: tuple[str, ...] = ()
    """What else a person has to know, one sentence each."""

    @property
    def to_do(self) -> tuple[str, ...]:
        """Everything that has to be added or checked by hand, by column."""
        return (*self.notes, *(f"{column.name}: {note}" for column in self.columns for note in column.by_hand))

    @property
    def text(self) -> str:
        """The schema file: it cannot be loaded before what is missing has been added."""
        notes = "".join(f"# {note}\n" for note in self.notes)
        head = (
            f"# Imported from {self.source}: a beginning, to be completed and checked by a person. Levels and edges\n"
            '# must be public knowledge. When they are, write origin = "reviewed"; measure refuses the file before.\n'
            f"{notes}{tomli_w.dumps({'name': self.name, 'origin': 'data-derived'})}"
        )
        return "\n".join([head, *(column.text for column in self.columns)])
