"""Columns with a fixed list of levels, and yes/no columns."""

from typing import Literal

import pyarrow as pa
from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator

from noisewise.errors import did_you_mean
from noisewise.schema.column import ColumnKind, refuse_repeats


class Categorical(ColumnKind):
    """A column with a fixed list of labels (or integer codes)."""

    type: Literal["categorical"] = "categorical"
    """The kind of column."""
    levels: tuple[StrictStr | StrictInt, ...] = Field(min_length=1)
    """The values that may occur, in the order wanted in results; the first is the reference."""
    fold: dict[str, tuple[StrictStr | StrictInt, ...]] = Field(default={})
    """Source values that count as a level: { "married" = ["1", "2"] }. A level's own label always counts as itself."""
    other: StrictStr | None = None
    """Label that takes every undeclared value; may be one of `levels`. Without it they are refused."""
    ordered: StrictBool = False
    """Whether the order of the levels means something."""

    @field_validator("fold")
    @classmethod
    def _in_order(cls, fold: dict[str, tuple[str | int, ...]]) -> dict[str, tuple[str | int, ...]]:
        return dict(sorted(fold.items()))  # equal schemas give equal text

    @model_validator(mode="after")
    def _check(self) -> "Categorical":
        if len({type(level) for level in self.levels}) > 1:
            raise ValueError("levels mix text and integers. Quote all of them or none.")
        refuse_repeats("levels", self.levels)
        if self.other is not None and self.integer_levels:
            raise ValueError("`other` needs text levels. Quote the levels.")
        clash = set(self.missing_values) & {str(level) for level in self.levels}
        if clash:
            raise ValueError(f"{sorted(clash)[0]!r} is both a level and a missing value. Keep one of the two.")
        self._check_fold()
        return self

    def _check_fold(self) -> None:
        labels = self.declared_labels
        for label, values in self.fold.items():
            if label not in labels:
                raise ValueError(f"fold names {label!r}, which is not a level. {did_you_mean(label, labels)}")
            if self.integer_levels and not all(isinstance(value, int) for value in values):
                raise ValueError(
                    f"fold of {label!r} mixes text with integer levels. Quote the levels, or give integers."
                )
        raw = [str(value) for values in self.fold.values() for value in values]
        refuse_repeats("folded values", raw)
        for value in raw:
            if value in labels or value in self.missing_values:
                raise ValueError(f"{value!r} is folded, and is a level or a missing value too. Keep one of the two.")

    @property
    def integer_levels(self) -> bool:
        """Whether the levels are integer codes rather than text."""
        return isinstance(self.levels[0], int)

    @property
    def declared_labels(self) -> tuple[str, ...]:
        labels = tuple(str(level) for level in self.levels)
        extra = () if self.other is None or self.other in labels else (self.other,)
        return labels + extra

    @property
    def source_values(self) -> tuple[tuple[str | int, ...], ...]:
        """For each declared level the source's values that count as it, its own first."""
        own: tuple[str | int, ...] = self.levels if self.integer_levels else self.declared_labels
        return tuple((value, *self.fold.get(str(value), ())) for value in own)

    def declared_values(self) -> pa.Array:
        if self.integer_levels:
            return pa.array(self.levels, pa.int64())
        return pa.array(self.declared_labels, pa.string())

    def _from_levels(self, indices: pa.Array, levels: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(indices, levels, ordered=self.ordered)


class Boolean(ColumnKind):
    """A yes/no column: true/false in any case, 1/0, or the words declared here."""

    type: Literal["boolean"] = "boolean"
    """The kind of column."""
    false_values: tuple[StrictStr, ...] = ()
    """Further texts that mean no."""
    true_values: tuple[StrictStr, ...] = ()
    """Further texts that mean yes."""

    @model_validator(mode="after")
    def _check(self) -> "Boolean":
        refuse_repeats("false_values, true_values and missing_values", self._texts)
        return self

    @property
    def _texts(self) -> tuple[str, ...]:
        return self.false_values + self.true_values + self.missing_values

    @property
    def declared_labels(self) -> tuple[str, ...]:
        return ("false", "true")

    def declared_values(self) -> pa.Array:
        return pa.array([False, True])
