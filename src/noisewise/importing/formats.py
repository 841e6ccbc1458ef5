"""Which metadata can be imported, and how a file tells which kind it is."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from noisewise.errors import SchemaError, did_you_mean
from noisewise.importing.columns import Imported
from noisewise.importing.frictionless import from_frictionless
from noisewise.importing.pgm import from_domain
from noisewise.importing.sdv import from_sdv

FORMATS: dict[str, Callable[[Mapping[str, Any], str | None], Imported]] = {
    "sdv": from_sdv,
    "domain": from_domain,
    "frictionless": from_frictionless,
}
"""The formats by the names that commands use. A new one is one line here."""


def import_metadata(path: str | Path, *, format: str | None = None, table: str | None = None) -> Imported:
    """Read metadata as the beginning of a schema; the format is told from the file unless it is named.

    `table` chooses among several tables, or names the only one.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SchemaError(f"Cannot read {path}: {error.strerror}. Check the path.") from None
    except ValueError:
        raise SchemaError(f"{path.name} is not JSON. Give SDV metadata, a domain.json or a table schema.") from None
    kind = format or _told(content)
    if kind not in FORMATS:
        raise SchemaError(f"There is no format {kind!r}. {did_you_mean(str(kind), FORMATS)}")
    try:
        imported = FORMATS[kind](content, table)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise SchemaError(f"{path.name} is not laid out as {kind!r} metadata are. Name another --format.") from None
    if not imported.columns:
        raise SchemaError(f"{path.name} describes no column that a release can hold.")
    return imported


def _told(content: Any) -> str:
    if isinstance(content, Mapping):
        if "fields" in content or "resources" in content:
            return "frictionless"
        if "columns" in content or "tables" in content:
            return "sdv"
        if content and all(isinstance(value, int) for value in content.values()):
            return "domain"
    raise SchemaError(f"It is not clear what kind of metadata this is. Name one of {', '.join(FORMATS)} as --format.")
