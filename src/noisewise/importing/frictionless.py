"""A frictionless table schema: fields with types, and often with the values they may have."""

from collections.abc import Mapping
from typing import Any

from noisewise.errors import SchemaError, did_you_mean
from noisewise.importing.columns import EDGES, LEVELS, PERIODS, Imported, ImportedColumn

_CHECK = "levels: check that they are public knowledge."


def from_frictionless(content: Mapping[str, Any], table: str | None) -> Imported:
    """A table schema by itself, or that of one resource of a data package."""
    name, schema = _schema(content, table)
    missing = [str(text) for text in schema.get("missingValues", [""]) if text != ""]
    columns, left_out = [], []
    for described in schema["fields"]:
        column = _column(described, missing)
        if column is None:
            left_out.append(f"{described.get('name')!r} ({described.get('type')})")
        else:
            columns.append(column)
    notes = [f"Left out, because no column of a release can hold them: {', '.join(left_out)}."] if left_out else []
    if schema.get("primaryKey") or schema.get("foreignKeys"):
        notes.append("Keys are not taken over: a column that all rows of a person share goes into [privacy] unit.")
    source = "a frictionless table schema"
    return Imported(source=source, name=name, columns=tuple(columns), notes=tuple(notes))


def _schema(content: Mapping[str, Any], table: str | None) -> tuple[str, Mapping[str, Any]]:
    if "resources" not in content:
        return table or str(content.get("name") or "table"), content
    resources = {str(one.get("name")): one.get("schema") for one in content["resources"]}
    if table is None and len(resources) == 1:
        table = next(iter(resources))
    if table not in resources:
        raise SchemaError(f"The data package holds several tables. Choose one. {did_you_mean(str(table), resources)}")
    schema = resources[table]
    if not isinstance(schema, Mapping) or "fields" not in schema:
        raise SchemaError(f"The resource {table!r} has no schema with fields. Describe it first.")
    return table, schema


def _column(described: Mapping[str, Any], missing: list[str]) -> ImportedColumn | None:
    name, kind = str(described["name"]), str(described.get("type", "string"))
    constraints = described.get("constraints") or {}
    keys, to_do = _kind(kind, described, constraints)
    if not keys:
        return None
    if not constraints.get("required"):
        keys["missing"] = "category"
    own = [str(text) for text in described.get("missingValues", missing) if text != ""]
    if own:
        keys["missing_values"] = own
    if described.get("description"):
        keys["description"] = " ".join(str(described["description"]).split())
    return ImportedColumn(name=name, keys=keys, by_hand=tuple(to_do))


def _kind(kind: str, described: Mapping[str, Any], constraints: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values = constraints.get("enum") or [_value(one) for one in described.get("categories") or []]
    if values:
        ordered = {"ordered": True} if described.get("categoriesOrdered") else {}
        whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
        levels = list(values) if whole else [str(value) for value in values]
        return {"type": "categorical", "levels": levels, **ordered}, [_CHECK]
    if kind in ("integer", "number", "year"):
        return _numeric(kind, constraints)
    if kind == "boolean":
        words = {"true_values": described.get("trueValues"), "false_values": described.get("falseValues")}
        return {"type": "boolean", **{key: [str(v) for v in given] for key, given in words.items() if given}}, []
    if kind in ("date", "datetime"):
        range_ = {"first": constraints.get("minimum"), "last": constraints.get("maximum")}
        found = {key: str(value)[:10] for key, value in range_.items() if value is not None}
        return {"type": kind, **found}, [PERIODS if len(found) < 2 else "period: say how days are counted together."]
    if kind == "string":
        return {"type": "categorical", "levels": []}, [LEVELS]
    return {}, []


def _numeric(kind: str, constraints: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    ends = [constraints.get("minimum"), constraints.get("maximum")]
    known = [float(end) for end in ends if isinstance(end, int | float) and not isinstance(end, bool)]
    edges = [int(end) if end.is_integer() else end for end in known] if len(known) == 2 else []
    note = "edges: only the outermost are known. Write the inner ones from public knowledge." if edges else EDGES
    return {"type": "numeric", "edges": edges, **({} if kind == "number" else {"integer": True})}, [note]


def _value(category: Any) -> Any:
    return category.get("value") if isinstance(category, Mapping) else category
