"""Populations to rehearse with: where the invented rows come from. All of them are public."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Integer

from noisewise.model.maxent import MaxEnt
from noisewise.model.sampling import draw_rows
from noisewise.posterior.result import Posterior
from noisewise.schema import Schema


class Population(ABC):
    """A distribution of rows over a schema."""

    @abstractmethod
    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Independent rows of level codes."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What was assumed, in a few words."""


@dataclass(frozen=True, kw_only=True)
class Uniform(Population):
    """Every possible row equally likely: assumes nothing, and is nothing like real tables."""

    schema: Schema
    """The schema."""

    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Draw every column by itself; with rules, from all rows that they leave possible."""
        if self.schema.rules:
            model = MaxEnt.of(self.schema.sizes, (), self.schema.impossible)
            return draw_rows(model, np.zeros(0), rows, stream)
        return np.stack([stream.integers(0, size, rows) for size in self.schema.sizes], axis=1)

    @property
    def description(self) -> str:
        """What was assumed."""
        return "uniform rows"


@dataclass(frozen=True, kw_only=True, eq=False)
class FromSample(Population):
    """The rows of a public sample, drawn with replacement."""

    codes: Integer[np.ndarray, "sampled columns"]
    """The sample as level codes."""

    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Draw rows of the sample, with replacement."""
        return np.asarray(self.codes[stream.integers(0, len(self.codes), rows)])

    @property
    def description(self) -> str:
        """What was assumed."""
        return f"a public sample of {len(self.codes):,} rows"


@dataclass(frozen=True, kw_only=True, eq=False)
class FromPosterior(Population):
    """One draw of a release's posterior, taken for the truth."""

    posterior: Posterior
    """The posterior."""
    number: int
    """Which of its draws."""

    def draw(self, rows: int, stream: np.random.Generator) -> Integer[np.ndarray, "rows columns"]:
        """Draw rows of the model at that draw."""
        return draw_rows(self.posterior.model, self.posterior.draws[self.number], rows, stream)

    @property
    def description(self) -> str:
        """What was assumed."""
        return f"draw {self.number} of an earlier release's posterior"
