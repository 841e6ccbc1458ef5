"""A domain.json as private-pgm reads it: for each column the number of its levels, which are the codes 0, 1, 2, …."""

from collections.abc import Mapping
from typing import Any

from noisewise.errors import SchemaError
from noisewise.importing.columns import Imported, ImportedColumn


def from_domain(content: Mapping[str, Any], table: str | None) -> Imported:
    """Every column as whole-numbered codes."""
    columns = []
    for name, size in content.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SchemaError(f"domain.json gives {name!r} the size {size!r}: it must be a whole number from 1.")
        keys = {"type": "categorical", "levels": list(range(size))}
        note = (
            "levels: codes without a meaning. Write labels, with the codes in `fold`; for binned numbers write edges."
        )
        columns.append(ImportedColumn(name=name, keys=keys, by_hand=(note,)))
    notes = ("The sizes must be public knowledge: a size that was read off the table tells what is in it.",)
    return Imported(source="a domain.json", name=table or "table", columns=tuple(columns), notes=notes)
