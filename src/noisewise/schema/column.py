"""What every kind of column declares, and what it promises to the stages that follow."""

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StrictStr

MISSING_LABEL = "(missing)"


class ColumnKind(BaseModel):
    """A column of the schema. Its levels have an order, and the position of a level is its code."""

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
        """What each declared level decodes to when decoding is not random, in canonical order."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all levels in canonical order; the position of a label is its code."""
        return self.declared_labels + ((MISSING_LABEL,) if self.missing == "category" else ())

    @property
    def size(self) -> int:
        """Number of levels, missing included where it is a category."""
        return len(self.labels)

    @property
    def released_type(self) -> pa.DataType:
        """The type of the values that decoding gives (of a categorical column: of its levels)."""
        return self.declared_values().type

    def decode(self, codes: np.ndarray, stream: np.random.Generator | None = None) -> pa.Array:
        """Turn level codes into released values; the missing level becomes null.

        Columns that are released at random within a bin or period draw from `stream`, and need one.
        """
        levels = self.declared_values()
        null = codes >= len(levels)
        indices = pa.array(codes.astype(np.int32), mask=null if null.any() else None)
        return self._from_levels(indices, levels)

    def _from_levels(self, indices: pa.Array, levels: pa.Array) -> pa.Array:
        return levels.take(indices)


def refuse_repeats(what: str, values: Any) -> None:
    """Raise a ValueError that names the first value which occurs twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{what} repeat {value!r}. Remove one.")
        seen.add(value)


def number_text(value: float) -> str:
    """A number as people write it: whole numbers without a point, others in full."""
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def uniforms(stream: np.random.Generator | None, size: int) -> np.ndarray:
    """One uniform number per row from the dataset's own stream."""
    if stream is None:
        raise ValueError("This column is released at random within its levels: decoding it needs a random stream.")
    return stream.random(size)
