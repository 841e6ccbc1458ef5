"""Columns of numbers: counted in bins with declared edges, released as a number of the bin."""

import math
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, StrictBool, StrictStr, model_validator

from noisewise.schema.column import ColumnKind, number_text, refuse_repeats, uniforms


class Numbers(ColumnKind):
    """What columns of numbers have in common."""

    closed: Literal["left", "right"] = "left"
    """Which edge of an inner boundary belongs to the bin: [a, b) or (a, b]."""
    beyond: Literal["refuse", "end-bins"] = "refuse"
    """What to do with values beyond the outermost edges: refuse the table, or count them in the end bins."""
    integer: StrictBool = False
    """Whether released values are whole numbers."""
    released_as: Literal["representative", "uniform"] = "representative"
    """What stands for a bin in synthetic rows: one value, or a number drawn evenly from within the bin."""
    codes: tuple[StrictStr, ...] = ()
    """Values that stand among the numbers and are none, such as "N" for not applicable: a level each."""
    codes_as: Literal["null", "text"] = "null"
    """How codes are released: as nulls in a column of numbers, or as they are in a column of text."""

    @model_validator(mode="after")
    def _check_codes(self) -> "Numbers":
        refuse_repeats("codes and missing_values", (*self.codes, *self.missing_values))
        return self


class Numeric(Numbers):
    """A number, counted in bins with declared edges."""

    type: Literal["numeric"] = "numeric"
    """The kind of column."""
    edges: tuple[float, ...] = Field(min_length=2)
    """Ascending bin edges. The outermost edges belong to the end bins."""
    representatives: tuple[float, ...] = ()
    """The released value of each bin; by default the middle of the bin."""

    @model_validator(mode="after")
    def _check(self) -> "Numeric":
        refuse_unsorted(self.edges)
        if self.released_as == "uniform":
            self._check_uniform()
        else:
            self._check_representatives()
        return self

    def _check_uniform(self) -> None:
        if self.representatives:
            raise ValueError('`representatives` and released_as = "uniform" contradict each other. Keep one.')
        if not all(math.isfinite(edge) for edge in self.edges):
            raise ValueError("an unbounded bin has no uniform distribution. Give finite outermost edges.")
        if self.integer and any(first > last for first, last in map(self._whole_ends, range(self.bins))):
            raise ValueError("a bin holds no whole number but integer = true. Correct the edges.")

    def _check_representatives(self) -> None:
        if self.representatives and len(self.representatives) != self.bins:
            raise ValueError(
                f"{len(self.representatives)} representatives for {self.bins} bins. Give one value per bin."
            )
        if not all(math.isfinite(value) for value in self.midpoints):
            raise ValueError("a bin has no middle (unbounded, or without a whole number). Declare `representatives`.")
        for value, low, high in zip(self.midpoints, self.edges, self.edges[1:], strict=False):
            if not low <= value <= high:
                raise ValueError(f"representative {value:g} lies outside its bin {low:g} to {high:g}. Correct it.")
            if self.integer and value != int(value):
                raise ValueError(f"representative {value:g} is not whole but integer = true. Round it.")

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def midpoints(self) -> tuple[float, ...]:
        """The value that stands for each bin."""
        if self.representatives:
            return self.representatives
        bins = range(self.bins)
        return tuple(self._whole_middle(i) if self.integer else (self.edges[i] + self.edges[i + 1]) / 2 for i in bins)

    def _whole_middle(self, i: int) -> float:
        """The middle one of the whole numbers in a bin; of two, the lower. [17, 32) holds 17 to 31."""
        first, last = self._whole_ends(i)
        return float((first + last) // 2) if first <= last else math.nan

    def _whole_ends(self, i: int) -> tuple[int, int]:
        """The first and the last whole number of a bin; first > last if there is none."""
        low, high = self.edges[i], self.edges[i + 1]
        if not math.isfinite(low + high):
            return 1, 0
        open_low = self.closed == "right" and i > 0
        open_high = self.closed == "left" and i < self.bins - 1
        first = math.floor(low) + 1 if open_low else math.ceil(low)
        last = math.ceil(high) - 1 if open_high else math.floor(high)
        return first, last

    @property
    def declared_labels(self) -> tuple[str, ...]:
        last = self.bins - 1
        left, right = ("[", ")") if self.closed == "left" else ("(", "]")
        intervals = tuple(
            f"{'[' if i == 0 else left}{number_text(low)}, {number_text(high)}{']' if i == last else right}"
            for i, (low, high) in enumerate(zip(self.edges, self.edges[1:], strict=False))
        )
        return intervals + self.codes

    @property
    def released_type(self) -> pa.DataType:
        return pa.string() if self._as_text else self._number_type

    @property
    def _as_text(self) -> bool:
        return bool(self.codes) and self.codes_as == "text"

    @property
    def _number_type(self) -> pa.DataType:
        return pa.int64() if self.integer else pa.float64()

    def declared_values(self) -> pa.Array:
        values = [int(v) if self.integer else v for v in self.midpoints]
        numbers = pa.array(values + [None] * len(self.codes), self._number_type)
        return self._with_codes(numbers, np.arange(len(numbers))) if self._as_text else numbers

    def decode(self, codes: np.ndarray, stream: np.random.Generator | None = None) -> pa.Array:
        if self.released_as == "representative":
            return super().decode(codes)
        bins = np.minimum(codes, self.bins - 1).astype(np.intp)
        drawn = self._within(bins, uniforms(stream, len(codes)))
        numbers = pa.array(drawn, self._number_type, mask=codes >= self.bins)
        return self._with_codes(numbers, codes) if self._as_text else numbers

    def _within(self, bins: np.ndarray, position: np.ndarray) -> np.ndarray:
        """The number at a relative position within each bin: low + position · width, never past the bin's end."""
        if self.integer:
            ends = np.array([self._whole_ends(i) for i in range(self.bins)], np.int64)
            first, count = ends[:, 0], ends[:, 1] - ends[:, 0] + 1
            return first[bins] + np.minimum((position * count[bins]).astype(np.int64), count[bins] - 1)
        edges = np.array(self.edges)
        if self.closed == "right":
            position = 1 - position  # in (0, 1]
        low, high = edges[bins], edges[bins + 1]
        value = low + position * (high - low)
        if self.closed == "left":
            return np.minimum(value, np.where(bins < self.bins - 1, np.nextafter(high, low), high))
        return np.clip(value, np.where(bins > 0, np.nextafter(low, high), low), high)

    def _with_codes(self, numbers: pa.Array, codes: np.ndarray) -> pa.Array:
        """Numbers as text, with the codes in place of the nulls that stand for them."""
        which = codes.astype(np.int32) - self.bins
        is_code = (which >= 0) & (which < len(self.codes))
        texts = pa.array(self.codes, pa.string()).take(pa.array(which, mask=~is_code))
        return pc.coalesce(numbers.cast(pa.string()), texts)


def refuse_unsorted(edges: tuple[float, ...]) -> None:
    """Raise a ValueError unless the edges increase."""
    if any(math.isnan(edge) for edge in edges) or any(low >= high for low, high in pairwise(edges)):
        raise ValueError(f"edges must increase, got {list(edges)}. Sort them and remove repeats.")
