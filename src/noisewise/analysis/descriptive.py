"""Means, shares, quantiles and correlations, each with its covariance matrix from influence values.

For every distinct row the influence value says how far one row more of its kind moves each estimate; the covariance is
the sum of their products over the rows, divided by rows².
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, Estimator, counted
from noisewise.analysis.formulas import codes_of, missing_note
from noisewise.analysis.rows import WeightedRows, weighted_rows
from noisewise.errors import AnalysisError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Influence:
    """Estimates of one dataset with the influence of each distinct row on them."""

    values: Float[ndarray, " terms"]
    """The estimates; NaN where the dataset has none."""
    rows: Float[ndarray, "distinct terms"]
    """Influence values."""


class Descriptive(Estimator):
    """A statistic with influence values."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns it uses."""

    @abstractmethod
    def terms(self, frame: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
        """Names of the estimands, each with the columns it speaks of."""

    @abstractmethod
    def measure(self, frame: "pd.DataFrame", counts: Float[ndarray, " distinct"]) -> Influence:
        """Estimates on the distinct rows of one dataset."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the summary calls it."""

    notes: ClassVar[tuple[str, ...]] = ()
    empty: ClassVar[str] = "a group has no rows, or too few for a variance"

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        rows = weighted_rows(datasets, self.columns)
        return self._estimates(rows)

    def _estimates(self, rows: list[WeightedRows]) -> Estimates:
        terms = self.terms(rows[0].frame)
        found = [(self.measure(part.frame, counts), counts) for part in rows for counts in part.counts]
        values = np.stack([one.values for one, _ in found])
        covariances = np.stack([(one.rows * n[:, None]).T @ one.rows / n.sum() ** 2 for one, n in found])
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        used = np.isfinite(values) & np.isfinite(variances)
        certain = used.any(axis=0) & ((values == values[0]) & (variances == 0) | ~used).all(axis=0)
        names = np.array(list(terms))
        if certain.all():
            raise AnalysisError(f"{names[0]} is {values[0, 0]:g} in every dataset: there is nothing to estimate.")
        kept = names[~certain]
        return Estimates(
            terms=tuple(map(str, kept)),
            values=np.where(used, values, 0.0)[:, ~certain],
            covariances=np.nan_to_num(covariances)[:, ~certain][:, :, ~certain],
            used=used[:, ~certain],
            left_out=counted({self.empty: ~used}),
            notes=(*self.notes, *_certain_note(names[certain], values[0, certain]), *missing_note(rows)),
            variables={str(name): terms[name] for name in kept},
            title=self.title,
        )


def _certain_note(names: ndarray, values: ndarray) -> tuple[str, ...]:
    if not len(names):
        return ()
    listed = ", ".join(f"{name} = {value:g}" for name, value in zip(names, values, strict=True))
    return (f"Not pooled, because the same in every dataset and without variance: {listed}.",)


@dataclass(frozen=True)
class _Grouped(Descriptive):
    """A statistic of one column, in all rows or in groups of them."""

    column: str
    """The column."""
    by: tuple[str, ...] = ()
    """Columns whose levels make the groups."""

    heading: ClassVar[str]

    @property
    def formula(self) -> str:  # type: ignore[override]  # an attribute of the base, computed here
        return f"`{self.column}` ~ {':'.join(f'`{name}`' for name in self.by) or '1'}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *self.by)

    @property
    def title(self) -> str:
        return f"{self.heading} of {self.column}" + (f" by {', '.join(self.by)}" if self.by else "")


@dataclass(frozen=True)
class Means(_Grouped):
    """The mean of a number (or of a yes/no column: a share), in groups; write `means("hours", by="gender")`."""

    heading = "Means"

    def terms(self, frame: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
        number_of(frame, self.column)
        return {f"{self.column}{label}": self.columns for label in _groups(frame, self.by)[1]}

    def measure(self, frame: "pd.DataFrame", counts: Float[ndarray, " distinct"]) -> Influence:
        number, inside = number_of(frame, self.column), _groups(frame, self.by)[0]
        sizes = counts @ inside
        with np.errstate(all="ignore"):
            mean = (counts * number) @ inside / sizes
            unbiased = np.sqrt(sizes / (sizes - 1))  # so that the variance is s² / n with denominator n - 1
            rows = inside * (number[:, None] - mean) * (counts.sum() / sizes * unbiased)
        return Influence(values=np.where(sizes > 1, mean, np.nan), rows=rows)


@dataclass(frozen=True)
class Proportions(_Grouped):
    """The share of each level of a column, in groups; write `proportions("income", by="gender")`."""

    heading = "Shares"

    def terms(self, frame: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
        levels = codes_of(frame, self.column)[1]
        groups = _groups(frame, self.by)[1]
        return {f"{self.column}={level}{group}": self.columns for group in groups for level in levels}

    def measure(self, frame: "pd.DataFrame", counts: Float[ndarray, " distinct"]) -> Influence:
        codes, levels = codes_of(frame, self.column)
        chosen, inside = np.eye(len(levels))[codes], _groups(frame, self.by)[0]
        sizes = counts @ inside
        with np.errstate(all="ignore"):
            share = (inside * counts[:, None]).T @ chosen / sizes[:, None]
            rows = inside[:, :, None] * (chosen[:, None, :] - share) * (counts.sum() / sizes)[None, :, None]
        return Influence(values=share.reshape(-1), rows=rows.reshape(len(frame), -1))


@dataclass(frozen=True)
class Contingency(Descriptive):
    """The share of every cell of a table of columns; write `contingency("race", "income")`.

    Shares are of all rows and add up to 1; those within a row of the table are `proportions(…, by=…)`. To test whether
    the two columns go together see `independence_test`.
    """

    factors: tuple[str, ...]
    """The columns that are crossed."""

    @property
    def formula(self) -> str:  # type: ignore[override]  # an attribute of the base, computed here
        return ":".join(f"`{name}`" for name in self.factors)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.factors

    @property
    def title(self) -> str:
        return f"Shares of the cells of {' × '.join(self.factors)}"

    def terms(self, frame: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
        return {label[1:-1]: self.columns for label in _groups(frame, self.factors)[1]}

    def measure(self, frame: "pd.DataFrame", counts: Float[ndarray, " distinct"]) -> Influence:
        inside = _groups(frame, self.factors)[0]
        share = counts @ inside / counts.sum()
        return Influence(values=share, rows=inside - share)


@dataclass(frozen=True)
class Correlations(Descriptive):
    """Pearson's correlation of every pair of numbers; write `correlations("age", "hours")`.

    The variance comes from the data's fourth moments, so that normality is not assumed.
    """

    numbers: tuple[str, ...]
    """The columns, at least two."""

    @property
    def formula(self) -> str:  # type: ignore[override]  # an attribute of the base, computed here
        return " + ".join(f"`{name}`" for name in self.numbers)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.numbers

    @property
    def title(self) -> str:
        return f"Correlations of {', '.join(self.numbers)}"

    empty = "a column does not vary"

    def terms(self, frame: "pd.DataFrame") -> dict[str, tuple[str, ...]]:
        if len(set(self.numbers)) < 2:
            raise AnalysisError("A correlation needs two different columns. Write correlations('age', 'hours').")
        return {f"{first} ~ {second}": (first, second) for first, second in combinations(self.numbers, 2)}

    def measure(self, frame: "pd.DataFrame", counts: Float[ndarray, " distinct"]) -> Influence:
        numbers = np.stack([number_of(frame, name) for name in self.numbers], axis=1)
        share = counts / counts.sum()
        centred = numbers - share @ numbers
        with np.errstate(all="ignore"):
            unit = centred / np.sqrt(share @ centred**2)
        pairs = list(combinations(range(len(self.numbers)), 2))
        products = np.stack([unit[:, i] * unit[:, j] for i, j in pairs], axis=1)
        squares = np.stack([(unit[:, i] ** 2 + unit[:, j] ** 2) / 2 for i, j in pairs], axis=1)
        values = share @ products
        return Influence(values=values, rows=products - values * squares)


def means(column: str, by: str | Sequence[str] = ()) -> Means:
    """Means of a number: `means("hours", by="gender")`; compare two with `pooled.difference`."""
    return Means(column, _names(by))


def proportions(column: str, by: str | Sequence[str] = ()) -> Proportions:
    """Shares of a column's levels: `proportions("income", by="gender")`."""
    return Proportions(column, _names(by))


def contingency(*columns: str) -> Contingency:
    """Shares of the cells of a table: `contingency("race", "income")`."""
    return Contingency(columns)


def correlations(*columns: str) -> Correlations:
    """Correlations of numbers: `correlations("age", "hours")`."""
    return Correlations(columns)


def number_of(frame: "pd.DataFrame", name: str) -> Float[ndarray, " distinct"]:
    """A column as numbers; a category is refused."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(frame[name]):
        raise AnalysisError(f"Column {name!r} is a category, not a number. Use proportions({name!r}).")
    return frame[name].to_numpy().astype(float)


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)


def _groups(frame: "pd.DataFrame", by: tuple[str, ...]) -> tuple[Float[ndarray, "distinct groups"], list[str]]:
    """Which rows are in which group, and what to call the groups."""
    inside, labels = np.ones((len(frame), 1)), [""]
    for name in by:
        codes, levels = codes_of(frame, name)
        chosen = np.eye(len(levels))[codes]
        inside = (inside[:, :, None] * chosen[:, None, :]).reshape(len(frame), -1)
        labels = [f"{label}, {name}={level}" if label else f"{name}={level}" for label in labels for level in levels]
    return inside, [f"[{label}]" if label else "" for label in labels]
