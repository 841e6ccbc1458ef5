"""Errors in a schema file as sentences: the file, the line, the column, the key and what to do."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from noisewise.errors import did_you_mean

KINDS = ("categorical", "boolean", "numeric", "date", "datetime")
"""The kinds of column by the names that files use."""

_TAGS = (*KINDS, "quantiles")


def explain(problem: Any, content: dict[str, Any], text: str, source: str, known: Mapping[str, Iterable[str]]) -> str:
    """One problem that pydantic found, in one sentence. `known` holds the keys of each part of the file."""
    location = list(problem["loc"])
    part = location[0] if location[:1] in (["column"], ["rule"]) and len(location) > 1 else None
    owner, key = None, None
    if part is not None and isinstance(location[1], int):
        entry = content[part][location[1]]
        inner = location[2:]
        inner = inner[1:] if inner[:1] and inner[0] in _TAGS else inner
        owner = f"rule {location[1] + 1}" if part == "rule" else f"column {_name(entry, location[1])!r}"
        key = next((step for step in inner if isinstance(step, str)), None)
        keys = known["rule"] if part == "rule" else known.get(str(entry.get("type")), ())
    else:
        keys = known[""]
        key = str(location[0]) if location else None
    line = _line_of(text, part, location, key)
    where = f"{source}, line {line}: " if line else f"{source}: "
    return where + (f"{owner}: " if owner else "") + _said(problem, key, keys)


def _name(entry: Any, position: int) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else f"number {position + 1}"


def _said(problem: Any, key: str | None, keys: Iterable[str]) -> str:
    context, listed = problem.get("ctx", {}), ", ".join(f'"{kind}"' for kind in KINDS)
    match problem["type"]:
        case "extra_forbidden" if key is not None:
            said = f"unknown key {key!r}. {did_you_mean(key, keys)}"
        case "missing":
            said = f"{key!r} is missing. Add it."
        case "union_tag_not_found":
            said = f"'type' is missing. Add type = one of {listed}."
        case "union_tag_invalid":
            said = f"unknown type. Use one of {listed}."
        case "too_short":
            said = f"{key} needs at least {context['min_length']} item{'s' * (context['min_length'] > 1)}."
        case "literal_error":
            said = f"{key} is {problem['input']!r}. Use {context['expected']}."
        case kind:
            message = str(problem["msg"]).removeprefix("Value error, ")
            said = message if key is None or kind.startswith("value_error") else f"{key}: {message}"
    return said


def _line_of(text: str, part: str | None, location: list[Any], key: str | None) -> int | None:
    """The line of a key inside its [[column]] or [[rule]], or of that, or of a key at the top."""
    lines = text.splitlines()
    start, stop = 0, len(lines)
    if part is not None:
        starts = [i for i, line in enumerate(lines) if re.match(rf"\s*\[\[\s*{part}\s*\]\]", line)]
        if location[1] >= len(starts):
            return None
        start = starts[location[1]]
        stop = next((i for i in range(start + 1, stop) if re.match(r"\s*\[\[", lines[i])), stop)
    for i in range(start, stop):
        if key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[i]):
            return i + 1
    return start + 1 if part is not None else None
