"""An experiment as a value: whose table, which marginals, which analyses, which methods, what the truth is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from experiments.task import Confidential, Method, Task
from noisewise.analysis.remedies import Remedy
from noisewise.schema import Schema
from noisewise.workload import Workload

SEED = 2023
"""Everything random in every experiment follows from this, the experiment's name, the repeat and ε."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What an analyst does with one dataset."""

    name: str
    """How records and tables call it."""
    formula: str
    """Outcome and terms."""
    family: str
    """Family of the generalized linear model."""
    remedy: Remedy | None = None
    """What to do about empty cells. With a bootstrap, single datasets get percentile intervals."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """One of the experiments."""

    name: str
    """How commands and files call it."""
    title: str
    """How pages and pictures call it."""
    schema: Schema
    """The table's schema."""
    workload: Workload
    """The marginals that are measured."""
    analyses: tuple[Analysis, ...]
    """What is done with the datasets; all of them have the same terms unless `truth` says otherwise."""
    truth: Callable[[], Mapping[tuple[str, str], float]]
    """The true value of each (analysis, term)."""
    sample: Callable[[int], Confidential]
    """The confidential table of a repeat."""
    epsilons: tuple[float, ...]
    """The budgets."""
    repeats: int
    """Repeats as published (or as meant)."""
    methods: tuple[Method, ...]
    """All methods."""
    pools: tuple[int, ...] = (100,)
    """For how many datasets pooling is tried, where a method has as many."""
    reduced: tuple[str, ...] = ()
    """The methods of the reduced run; all if empty."""

    def task(self, epsilon: float, repeat: int) -> Task:
        """The task of one repeat at one budget: the same for every method."""
        letters = int.from_bytes(self.name.encode(), "big")
        sequence = np.random.SeedSequence(SEED, spawn_key=(letters % 2**32, repeat, round(1000 * epsilon)))
        return Task(
            confidential=self.sample(repeat),
            workload=self.workload,
            epsilon=epsilon,
            seed=int(sequence.generate_state(1, np.uint64)[0]),
        )

    def method(self, name: str) -> Method:
        """A method by name."""
        found = {method.name: method for method in self.methods}
        if name not in found:
            raise ValueError(f"{name!r} is not a method of {self.name}. There are: {', '.join(found)}.")
        return found[name]
