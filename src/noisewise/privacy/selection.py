"""Which marginals to measure, chosen from the confidential table itself: a private act like any other, and counted.

A selection says in advance, from public facts alone, how many marginals it will measure and how many choices it will
make. Whatever it finds in the table, it makes exactly as many: so what it costs is known, debited and stated before
anything is drawn, and does not depend on the table.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from noisewise.errors import BudgetError
from noisewise.noisy_counts import Measurement
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.noise import NoiseSource
from noisewise.schema import Schema
from noisewise.workload import Marginal


@dataclass(frozen=True, kw_only=True)
class Chances:
    """What a selection may still draw: made for one table, and only as often as was planned."""

    tables: Mapping[Marginal, np.ndarray]
    """Exact counts of everything that may be looked at: secret."""
    schema: Schema
    """The schema with the edges that were bought; what is tied together is settled by the one before."""
    rows: int
    """The public number of rows."""
    first: PrivacyLoss
    """What the selection itself may cost: the noise of the one-way marginals, and the choices."""
    measuring: tuple[float, ...]
    """The noise of each marginal that will be chosen."""
    noise: NoiseSource
    """Where noise comes from."""

    def measured(self, marginal: Marginal, stddev: float) -> Measurement:
        """The noisy counts of one marginal."""
        rows = self.first.max_rows_per_unit
        values = self.noise.gaussian(self.tables[marginal], stddev, 2 * rows**2, (rows / stddev) ** 2)
        return Measurement(marginal=marginal, values=values, stddev=stddev)

    def chosen(self, candidates: list[Marginal], score: Callable[[Marginal], int], number: int) -> Marginal:
        """One of the candidates with a high score: choice `number`.

        A score must be the L1 distance of a candidate's exact counts from whole numbers that are public by now, plus
        a public number: replacing one unit moves it by at most 2 for each of its rows.
        """
        scores = np.array([score(candidate) for candidate in candidates], dtype=np.int64)
        return candidates[self.noise.choose(scores, 2 * self.first.max_rows_per_unit, self.first.rounds[number])]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a selection found."""

    kept: tuple[Measurement, ...]
    """Noisy counts it made on the way, which enter the posterior like any other."""
    marginals: tuple[Measurement, ...]
    """The chosen marginals, measured."""


@dataclass(frozen=True, kw_only=True)
class Selection(ABC):
    """How `measure` chooses marginals beyond the workload's."""

    share: float = 0.1
    """Its own share of the budget, noisy one-way counts included; the rest measures what is required and chosen."""
    max_cells: int = 100_000
    """Largest model to be made: the sum of all clique cells. Fits grow with it, in time and memory."""
    columns: tuple[str, ...] | None = None
    """The columns to tie together; by default all of the schema's."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BudgetError(f"The share of selection is {self.share}; it must lie between 0 and 1. Common: 0.1.")
        if self.max_cells < 1:
            raise BudgetError(f"max_cells is {self.max_cells}; a model has at least one cell. Try 100000.")

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that files and manifests use."""

    @abstractmethod
    def choices(self, schema: Schema, required: tuple[Marginal, ...]) -> int:
        """How many marginals will be chosen: public. A limit that cannot be kept is an error, before any cost."""

    @abstractmethod
    def candidates(self, schema: Schema, required: tuple[Marginal, ...]) -> tuple[Marginal, ...]:
        """All marginals that may be looked at."""

    @abstractmethod
    def choose(self, schema: Schema, required: tuple[Measurement, ...], chances: Chances) -> Chosen:
        """Choose and measure, using up all chances."""

    def described(self) -> dict[str, Any]:
        """The selection as text and numbers."""
        return {"method": self.name, **asdict(self)}

    def over(self, schema: Schema) -> tuple[str, ...]:
        """The columns to tie together, in the schema's order."""
        return schema.names if self.columns is None else tuple(sorted(set(self.columns), key=schema.index))

    def one_way(self, schema: Schema) -> tuple[Marginal, ...]:
        """The marginals that are measured first, so that choices can be made by what they do not explain."""
        return tuple((name,) for name in self.over(schema))


def expected_if_independent(one_way: Mapping[Marginal, Measurement], marginal: Marginal, rows: int) -> np.ndarray:
    """Whole-number counts of a marginal if its columns were independent, from noisy one-way counts alone."""
    table = np.full((), float(rows))
    for name in marginal:
        counts = np.maximum(one_way[(name,)].values.astype(float), 0.0)
        total = counts.sum()
        shares = counts / total if total > 0 else np.full(counts.shape, 1 / counts.size)
        table = np.multiply.outer(table, shares)
    return np.rint(table).astype(np.int64)


def distance(exact: np.ndarray, expected: np.ndarray) -> int:
    """The L1 distance of exact counts from public whole numbers; one replaced row moves it by at most 2."""
    return int(np.abs(exact - expected).sum())
