"""SDV metadata: kinds of columns without their values."""

from collections.abc import Mapping
from typing import Any

from noisewise.errors import SchemaError, did_you_mean
from noisewise.importing.columns import EDGES, LEVELS, PERIODS, Imported, ImportedColumn

_DAY_PARTS = {"%Y": "YYYY", "%m": "MM", "%d": "DD"}
_HOURS = ("%H", "%I", "%M", "%S", "%X", "%c")


def from_sdv(content: Mapping[str, Any], table: str | None) -> Imported:
    """The metadata of one table, in the layout of SDV 1; of several, `table` says which."""
    name, one = _table(content, table)
    columns, left_out = [], []
    for column, described in one["columns"].items():
        kind = str(described.get("sdtype", "unknown"))
        if kind in _KINDS:
            columns.append(_KINDS[kind](column, described))
        else:
            left_out.append(f"{column!r} ({kind})")
    notes = []
    if left_out:
        notes.append(
            f"Left out, because they name or locate people or are free text: {', '.join(left_out)}. Declare a column "
            "that all rows of a person share as [privacy] unit, if there is one."
        )
    if one.get("constraints") or content.get("relationships"):
        notes.append("Constraints and relationships are not taken over: write what cannot occur as [[rule]].")
    return Imported(source="SDV metadata", name=name, columns=tuple(columns), notes=tuple(notes))


def _table(content: Mapping[str, Any], table: str | None) -> tuple[str, Mapping[str, Any]]:
    tables = content.get("tables")
    if not isinstance(tables, Mapping):
        return table or "table", content
    if table is None and len(tables) == 1:
        table = next(iter(tables))
    if table is None or table not in tables:
        raise SchemaError(f"The metadata speak of several tables. Choose one. {did_you_mean(str(table), tables)}")
    return table, tables[table]


def _categorical(name: str, described: Mapping[str, Any]) -> ImportedColumn:
    order = described.get("order")
    if isinstance(order, list) and order:
        keys = {"type": "categorical", "levels": [str(level) for level in order], "ordered": True}
        return ImportedColumn(name=name, keys=keys, by_hand=("levels: check that they are public knowledge.",))
    return ImportedColumn(name=name, keys={"type": "categorical", "levels": []}, by_hand=(LEVELS,))


def _numerical(name: str, described: Mapping[str, Any]) -> ImportedColumn:
    whole = {"integer": True} if "int" in str(described.get("computer_representation", "")).lower() else {}
    return ImportedColumn(name=name, keys={"type": "numeric", "edges": [], **whole}, by_hand=(EDGES,))


def _boolean(name: str, described: Mapping[str, Any]) -> ImportedColumn:
    return ImportedColumn(name=name, keys={"type": "boolean"})


def _datetime(name: str, described: Mapping[str, Any]) -> ImportedColumn:
    written = str(described.get("datetime_format") or "")
    to_do, keys = [PERIODS], {"type": "datetime" if any(part in written for part in _HOURS) else "date"}
    if keys["type"] == "date" and written:
        for theirs, ours in _DAY_PARTS.items():
            written = written.replace(theirs, ours)
        if "%" in written or any(part not in written for part in _DAY_PARTS.values()):
            to_do.append(f"format: {described['datetime_format']!r} is not written with year, month and day in digits.")
        elif written != "YYYY-MM-DD":
            keys["format"] = written
    return ImportedColumn(name=name, keys=keys, by_hand=tuple(to_do))


_KINDS = {"categorical": _categorical, "numerical": _numerical, "boolean": _boolean, "datetime": _datetime}
