"""The schema of a whole table: its columns in order and the rules between them."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import tomli_w
from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictStr, Tag, ValidationError, model_validator

from noisewise.errors import SchemaError, did_you_mean
from noisewise.schema.bought import QuantileNumeric
from noisewise.schema.categorical import Boolean, Categorical
from noisewise.schema.column import refuse_repeats
from noisewise.schema.messages import explain
from noisewise.schema.numeric import Numeric
from noisewise.schema.rules import Box, Rule
from noisewise.schema.temporal import Date, Datetime

Column = Categorical | Boolean | Numeric | QuantileNumeric | Date | Datetime


def _kind(column: Any) -> str | None:
    """Which kind of column this is: its `type`, except that a number whose edges are bought is a kind of its own."""
    known = column if isinstance(column, dict) else {key: getattr(column, key, None) for key in ("type", "edges")}
    kind = known.get("type")
    if kind == "numeric" and known.get("edges") == "quantiles":
        return "quantiles"
    return kind if isinstance(kind, str) else None


_AnyColumn = Annotated[
    Annotated[Categorical, Tag("categorical")]
    | Annotated[Boolean, Tag("boolean")]
    | Annotated[Numeric, Tag("numeric")]
    | Annotated[QuantileNumeric, Tag("quantiles")]
    | Annotated[Date, Tag("date")]
    | Annotated[Datetime, Tag("datetime")],
    Discriminator(_kind),
]

_KINDS: dict[str, type[BaseModel]] = {
    "categorical": Categorical,
    "boolean": Boolean,
    "numeric": Numeric,
    "date": Date,
    "datetime": Datetime,
}


class Schema(BaseModel):
    """The public description of a table: its columns, their levels, and where the description came from.

    Load one with `Schema.load("table.schema.toml")`. It is frozen; `hash` identifies it in every artifact.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    name: StrictStr = "table"
    """A name for the table, for titles and reports."""
    origin: Literal["hand-written", "public-sample", "reviewed", "data-derived"] = "hand-written"
    """Where the schema came from; `measure` refuses "data-derived" until a person has reviewed it."""
    columns: tuple[_AnyColumn, ...] = Field(min_length=1, alias="column")
    """The columns in canonical order."""
    rules: tuple[Rule, ...] = Field(default=(), alias="rule")
    """Combinations of levels that cannot occur; they hold in every synthetic row."""

    @model_validator(mode="after")
    def _check(self) -> "Schema":
        refuse_repeats("column names", [column.name for column in self.columns])
        for number, rule in enumerate(self.rules):
            try:
                rule.boxes(self)
            except (ValueError, SchemaError) as error:
                raise ValueError(f"rule {number + 1}: {error}") from None
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
            known = {kind: tuple(model.model_fields) for kind, model in _KINDS.items()}
            known["numeric"] = tuple(dict.fromkeys([*known["numeric"], *QuantileNumeric.model_fields]))
            known |= {"": ("name", "origin", "column", "rule"), "rule": tuple(Rule.model_fields)}
            # A column that is wrong counts as none, of which pydantic complains once more.
            problems = [
                problem for problem in error.errors() if problem["type"] != "too_short" or len(problem["loc"]) > 1
            ]
            raise SchemaError(
                "\n".join(explain(problem, content, text, source, known) for problem in problems or error.errors())
            ) from None

    def to_toml(self) -> str:
        """The schema as canonical TOML: equal schemas give equal text."""
        return tomli_w.dumps(self._content())

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical content."""
        text = json.dumps(self._content(), sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=_written)
        return hashlib.sha256(text.encode()).hexdigest()

    def _content(self) -> dict[str, Any]:
        content = _plain(self.model_dump(mode="python", by_alias=True, exclude_defaults=True))
        columns = [{"name": c.name, "type": c.type} | d for c, d in zip(self.columns, content["column"], strict=True)]
        rules = {"rule": content["rule"]} if self.rules else {}
        return {"name": self.name, "origin": self.origin, "column": columns, **rules}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in canonical order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each column, in canonical order."""
        return tuple(column.size for column in self.columns)

    @cached_property
    def impossible(self) -> tuple[Box, ...]:
        """What the rules exclude, as boxes of level codes: no row lies in any of them."""
        return tuple(box for rule in self.rules for box in rule.boxes(self))

    def index(self, name: str) -> int:
        """Position of a column; an unknown name is a `SchemaError` with the nearest known one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(f"Column {name!r} is not in the schema. {did_you_mean(name, self.names)}") from None

    def column(self, name: str) -> Column:
        """A column by name."""
        return self.columns[self.index(name)]

    def shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """Number of levels of each of the named columns."""
        return tuple(self.sizes[self.index(name)] for name in names)

    def decode(self, codes: np.ndarray, stream: np.random.Generator | None = None) -> pa.Table:
        """Turn a (rows, columns) array of level codes into a table of released values.

        Columns that are released at random within a level draw from `stream`, in the order of the columns.
        """
        arrays = [column.decode(codes[:, i], stream) for i, column in enumerate(self.columns)]
        return pa.table(arrays, names=list(self.names))

    @property
    def to_be_bought(self) -> tuple[QuantileNumeric, ...]:
        """The columns whose edges `measure` has yet to buy."""
        return tuple(column for column in self.columns if isinstance(column, QuantileNumeric))

    def with_edges(self, edges: Mapping[str, tuple[float, ...]]) -> "Schema":
        """The same schema once the edges of some columns are bought."""
        columns = tuple(
            column.with_edges(edges[column.name])
            if isinstance(column, QuantileNumeric) and column.name in edges
            else column
            for column in self.columns
        )
        return Schema(name=self.name, origin=self.origin, column=columns, rule=self.rules)

    @property
    def on_grids(self) -> "Schema":
        """The same schema with every column whose edges are yet to be bought in the cells of its grid."""
        columns = tuple(c.on_grid if isinstance(c, QuantileNumeric) else c for c in self.columns)
        return Schema(name=self.name, origin=self.origin, column=columns, rule=self.rules)

    def became(self, other: "Schema") -> bool:
        """Whether `other` is this schema, up to edges that have been bought since."""
        found = {c.name: c.edges for c in other.columns if isinstance(c, Numeric)}
        wanted = {c.name: found[c.name] for c in self.to_be_bought if c.name in found}
        return self.with_edges(wanted).hash == other.hash


def _plain(content: Any) -> Any:
    """Tuples as lists, throughout; keys that are None left out."""
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items() if value is not None}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return content


def _written(value: Any) -> str:
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not part of a schema")
