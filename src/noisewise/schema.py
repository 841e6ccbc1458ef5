"""The public schema: what a table may hold, written by a person and never read off the data.

The schema fixes the domain of every column, so that nothing about the domain of a release depends on the
confidential records. Its order is the canonical order of everything downstream: columns in the order
they are written, and within a column the declared levels, then `other`, then missing.
"""

import hashlib
import json
import math
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import tomli_w
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from noisewise.errors import SchemaError, did_you_mean

MISSING_LABEL = "(missing)"


class _Column(BaseModel):
    """What every kind of column declares."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: StrictStr = Field(min_length=1, max_length=200)
    """The column's name in the source and in the release."""
    missing: Literal["forbid", "category"] = "forbid"
    """Whether a missing value makes `measure` refuse, or is a category of its own."""
    missing_values: tuple[StrictStr, ...] = ()
    """Texts that stand for a missing value, such as "?" (NULL and NaN always do)."""
    description: StrictStr = ""
    """For people; not used."""

    @property
    def declared_labels(self) -> tuple[str, ...]:
        """Labels of the levels other than missing, in canonical order."""
        raise NotImplementedError

    def declared_values(self) -> pa.Array:
        """What each declared level decodes to, in canonical order."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all levels in canonical order; the position of a label is its code."""
        return self.declared_labels + ((MISSING_LABEL,) if self.missing == "category" else ())

    @property
    def size(self) -> int:
        """Number of levels, missing included where it is a category."""
        return len(self.labels)

    def decode(self, codes: np.ndarray) -> pa.Array:
        """Turn level codes into released values; the missing level becomes null."""
        levels = self.declared_values()
        null = codes >= len(self.declared_labels)
        indices = pa.array(codes.astype(np.int32), mask=null if null.any() else None)
        return self._from_levels(indices, levels)

    def _from_levels(self, indices: pa.Array, levels: pa.Array) -> pa.Array:
        return levels.take(indices)


class Categorical(_Column):
    """A column with a fixed list of labels (or integer codes)."""

    type: Literal["categorical"] = "categorical"
    """The kind of column."""
    levels: tuple[StrictStr | StrictInt, ...] = Field(min_length=1)
    """The values that may occur, in the order wanted in results; the first is the reference."""
    other: StrictStr | None = None
    """Label that takes every undeclared value; may be one of `levels`. Without it they are refused."""
    ordered: StrictBool = False
    """Whether the order of the levels means something."""

    @model_validator(mode="after")
    def _check(self) -> "Categorical":
        if len({type(level) for level in self.levels}) > 1:
            raise ValueError("levels mix text and integers. Quote all of them or none.")
        _refuse_repeats("levels", self.levels)
        if self.other is not None and self.integer_levels:
            raise ValueError("`other` needs text levels. Quote the levels.")
        clash = set(self.missing_values) & {str(level) for level in self.levels}
        if clash:
            raise ValueError(f"{sorted(clash)[0]!r} is both a level and a missing value. Keep one of the two.")
        return self

    @property
    def integer_levels(self) -> bool:
        """Whether the levels are integer codes rather than text."""
        return isinstance(self.levels[0], int)

    @property
    def declared_labels(self) -> tuple[str, ...]:
        labels = tuple(str(level) for level in self.levels)
        extra = () if self.other is None or self.other in labels else (self.other,)
        return labels + extra

    def declared_values(self) -> pa.Array:
        if self.integer_levels:
            return pa.array(self.levels, pa.int64())
        return pa.array(self.declared_labels, pa.string())

    def _from_levels(self, indices: pa.Array, levels: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(indices, levels, ordered=self.ordered)


class Boolean(_Column):
    """A yes/no column: true/false in any case, or 1/0."""

    type: Literal["boolean"] = "boolean"
    """The kind of column."""

    @property
    def declared_labels(self) -> tuple[str, ...]:
        return ("false", "true")

    def declared_values(self) -> pa.Array:
        return pa.array([False, True])


class Numeric(_Column):
    """A number, counted in bins with declared edges and released as one representative value per bin."""

    type: Literal["numeric"] = "numeric"
    """The kind of column."""
    edges: tuple[float, ...] = Field(min_length=2)
    """Ascending bin edges. The outermost edges belong to the end bins."""
    closed: Literal["left", "right"] = "left"
    """Which edge of an inner boundary belongs to the bin: [a, b) or (a, b]."""
    beyond: Literal["refuse", "end-bins"] = "refuse"
    """What to do with values beyond the outermost edges: refuse the table, or count them in the end bins."""
    integer: StrictBool = False
    """Whether released values are whole numbers."""
    representatives: tuple[float, ...] = ()
    """The released value of each bin; by default the middle of the bin."""

    @model_validator(mode="after")
    def _check(self) -> "Numeric":
        if any(math.isnan(edge) for edge in self.edges) or any(
            low >= high for low, high in zip(self.edges, self.edges[1:], strict=False)
        ):
            raise ValueError(f"edges must increase, got {list(self.edges)}. Sort them and remove repeats.")
        bins = len(self.edges) - 1
        if self.representatives and len(self.representatives) != bins:
            raise ValueError(f"{len(self.representatives)} representatives for {bins} bins. Give one value per bin.")
        if not all(math.isfinite(value) for value in self.midpoints):
            raise ValueError("a bin has no middle (unbounded, or without a whole number). Declare `representatives`.")
        for value, low, high in zip(self.midpoints, self.edges, self.edges[1:], strict=False):
            if not low <= value <= high:
                raise ValueError(f"representative {value:g} lies outside its bin {low:g} to {high:g}. Correct it.")
            if self.integer and value != int(value):
                raise ValueError(f"representative {value:g} is not whole but integer = true. Round it.")
        return self

    @property
    def midpoints(self) -> tuple[float, ...]:
        """The released value of each bin."""
        if self.representatives:
            return self.representatives
        bins = range(len(self.edges) - 1)
        return tuple(self._whole_middle(i) if self.integer else (self.edges[i] + self.edges[i + 1]) / 2 for i in bins)

    def _whole_middle(self, i: int) -> float:
        """The middle one of the whole numbers in a bin; of two, the lower. [17, 32) holds 17 to 31."""
        low, high = self.edges[i], self.edges[i + 1]
        if not math.isfinite(low + high):
            return math.nan
        open_low = self.closed == "right" and i > 0
        open_high = self.closed == "left" and i < len(self.edges) - 2
        first = math.floor(low) + 1 if open_low else math.ceil(low)
        last = math.ceil(high) - 1 if open_high else math.floor(high)
        return float((first + last) // 2) if first <= last else math.nan

    @property
    def declared_labels(self) -> tuple[str, ...]:
        last = len(self.edges) - 2
        left, right = ("[", ")") if self.closed == "left" else ("(", "]")
        return tuple(
            f"{'[' if i == 0 else left}{low:g}, {high:g}{']' if i == last else right}"
            for i, (low, high) in enumerate(zip(self.edges, self.edges[1:], strict=False))
        )

    def declared_values(self) -> pa.Array:
        kind = pa.int64() if self.integer else pa.float64()
        return pa.array([int(v) if self.integer else v for v in self.midpoints], kind)


Column = Annotated[Categorical | Boolean | Numeric, Field(discriminator="type")]


class Schema(BaseModel):
    """The public description of a table: its columns, their levels, and where the description came from.

    Load one with `Schema.load("table.schema.toml")`. It is frozen; `hash` identifies it in every artifact.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    name: StrictStr = "table"
    """A name for the table, for titles and reports."""
    origin: Literal["hand-written", "public-sample", "reviewed", "data-derived"] = "hand-written"
    """Where the schema came from; `measure` refuses "data-derived" until a person has reviewed it."""
    columns: tuple[Column, ...] = Field(min_length=1, alias="column")
    """The columns in canonical order."""

    @model_validator(mode="after")
    def _check(self) -> "Schema":
        _refuse_repeats("column names", [column.name for column in self.columns])
        return self

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a schema from a TOML file; errors name the file, the line, the column and the fix."""
        path = Path(path)
        try:
            text = path.read_text("utf-8-sig")
        except OSError as error:
            raise SchemaError(f"Cannot read the schema {path}: {error.strerror}. Check [schema] file.") from None
        except UnicodeDecodeError:
            raise SchemaError(f"The schema {path} is not UTF-8 text. Save it as UTF-8.") from None
        return cls.from_toml(text, source=path.name)

    @classmethod
    def from_toml(cls, text: str, source: str = "schema") -> "Schema":
        """Read a schema from TOML text; `source` names it in errors."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"{source}: not valid TOML: {error}.") from None
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise SchemaError("\n".join(_explain(error, content, text, source))) from None

    def to_toml(self) -> str:
        """The schema as canonical TOML: equal schemas give equal text."""
        return tomli_w.dumps(self._content())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical content."""
        text = json.dumps(self._content(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        content = self.model_dump(mode="python", by_alias=True, exclude_defaults=True)
        columns = [{"name": c.name, "type": c.type} | d for c, d in zip(self.columns, content["column"], strict=True)]
        content["column"] = [
            {key: list(value) if isinstance(value, tuple) else value for key, value in column.items()}
            for column in columns
        ]
        return {"name": self.name, "origin": self.origin, "column": content["column"]}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in canonical order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each column, in canonical order."""
        return tuple(column.size for column in self.columns)

    def index(self, name: str) -> int:
        """Position of a column; an unknown name is a `SchemaError` with the nearest known one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(f"Column {name!r} is not in the schema. {did_you_mean(name, self.names)}") from None

    def column(self, name: str) -> Categorical | Boolean | Numeric:
        """A column by name."""
        return self.columns[self.index(name)]

    def shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Number of levels of each of the named columns."""
        return tuple(self.sizes[self.index(name)] for name in names)

    def decode(self, codes: np.ndarray) -> pa.Table:
        """Turn a (rows, columns) array of level codes into a table of released values."""
        arrays = [column.decode(codes[:, i]) for i, column in enumerate(self.columns)]
        return pa.table(arrays, names=list(self.names))


def _refuse_repeats(what: str, values: Any) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{what} repeat {value!r}. Remove one.")
        seen.add(value)


def _explain(error: ValidationError, content: dict[str, Any], text: str, source: str) -> list[str]:
    """One sentence per problem, with the line where its column (or key) is written."""
    return [_explain_one(problem, content, text, source) for problem in error.errors()]


def _explain_one(problem: Any, content: dict[str, Any], text: str, source: str) -> str:
    location = [part for part in problem["loc"] if part not in ("categorical", "boolean", "numeric")]
    column, key = None, None
    if location[:1] == ["column"] and len(location) > 1 and isinstance(location[1], int):
        column = content["column"][location[1]].get("name", f"number {location[1] + 1}")
        key = next((part for part in location[2:] if isinstance(part, str)), None)
    elif location:
        key = str(location[0])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden" and key is not None:
        known = Schema.model_fields if column is None else _column_keys(content["column"][location[1]])
        message = f"unknown key {key!r}. {did_you_mean(key, ['column' if k == 'columns' else k for k in known])}"
    elif problem["type"] == "missing":
        message = f"{key!r} is missing. Add it."
    elif problem["type"] == "union_tag_not_found":
        message = '\'type\' is missing. Add type = "categorical", "boolean" or "numeric".'
    elif problem["type"] == "union_tag_invalid":
        message = 'unknown type. Use "categorical", "boolean" or "numeric".'
    elif key is not None and not problem["type"].startswith("value_error"):
        message = f"{key}: {message}"
    line = _line_of(text, location, key)
    where = f"{source}, line {line}: " if line else f"{source}: "
    return where + (f"column {column!r}: " if column is not None else "") + message


def _column_keys(column: dict[str, Any]) -> list[str]:
    kinds: dict[str, type[_Column]] = {"categorical": Categorical, "boolean": Boolean, "numeric": Numeric}
    kind = kinds.get(column.get("type", ""))
    return list(kind.model_fields) if kind else []


def _line_of(text: str, location: list[Any], key: str | None) -> int | None:
    """The line of a key inside its [[column]] block, or of the block, or of a key at the top."""
    lines = text.splitlines()
    start, stop = 0, len(lines)
    if location[:1] == ["column"] and len(location) > 1:
        starts = [i for i, line in enumerate(lines) if re.match(r"\s*\[\[\s*column\s*\]\]", line)]
        if location[1] >= len(starts):
            return None
        start = starts[location[1]]
        stop = next((i for i in starts if i > start), len(lines))
    for i in range(start, stop):
        if key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[i]):
            return i + 1
    return start + 1 if location[:1] == ["column"] and len(location) > 1 else None
