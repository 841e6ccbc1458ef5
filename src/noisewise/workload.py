"""What is measured: a set of marginals over the schema's columns, in canonical order."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from noisewise.errors import WorkloadError
from noisewise.formula import columns_of, read_formula
from noisewise.schema import Schema

MAX_MARGINAL_CELLS = 10_000_000

Marginal = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The marginals to measure. Build one with `Workload.of(schema, marginals=…, analyses=…)`.

    Columns within a marginal are in the schema's order, and so are the marginals, so that the same choice
    written in another order is the same workload.
    """

    marginals: tuple[Marginal, ...]
    """The marginals, none contained in another."""
    weights: tuple[float, ...] = ()
    """How the budget is divided over them: one positive number each, or none for equal parts. A marginal of weight 4
    has half the noise of one of weight 1."""

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(self.marginals):
            raise WorkloadError(
                f"There are {len(self.weights)} weights for {len(self.marginals)} marginals. Give one each, or none."
            )
        if not all(0 < weight < math.inf for weight in self.weights):
            raise WorkloadError(f"A weight is a positive number, got {list(self.weights)}. Common values: 0.25 to 4.")

    @property
    def weighted(self) -> tuple[float, ...]:
        """The weight of every marginal."""
        return self.weights or (1.0,) * len(self.marginals)

    @classmethod
    def of(
        cls,
        schema: Schema,
        marginals: Iterable[Sequence[str]] = (),
        analyses: Iterable[str] = (),
        weights: Sequence[float] = (),
    ) -> "Workload":
        """Check marginals against the schema and add those that the intended analyses need.

        A marginal that repeats or contains another is refused: it would spend budget on what the larger one
        already tells. What an analysis needs is added only where no given marginal covers it.
        `weights` divide the budget: one for each of `marginals`, in their order; what analyses add has weight 1.
        """
        given = [_canonical(schema, marginal) for marginal in marginals]
        _refuse_nested(given)
        wanted = list(given)
        for formula in analyses:
            wanted += [_canonical(schema, marginal) for marginal in marginals_for(formula)]
        kept = [m for m in dict.fromkeys(wanted) if not any(set(m) < set(other) for other in wanted)]
        if not kept:
            raise WorkloadError("The workload is empty. Name at least one marginal or one analysis.")
        for marginal in kept:
            refuse_huge(schema, marginal)
        ordered = tuple(sorted(kept, key=lambda m: [schema.index(name) for name in m]))
        return cls(marginals=ordered, weights=_weights(ordered, given, tuple(weights)))

    def cells(self, schema: Schema) -> int:
        """Total number of cells of all marginals."""
        return sum(math.prod(schema.shape(marginal)) for marginal in self.marginals)


def marginals_for(formula: str) -> list[Marginal]:
    """The marginals an analysis needs: every pair of its variables, and each interaction with the outcome.

    A regression of y on a and b rests on how y goes with a, y with b, and a with b; an interaction a:b
    rests on the three together. Names are checked by the caller against a schema.
    """
    left, right = read_formula(formula)
    outcome = columns_of(left or ())
    terms = [columns_of([term]) for term in right]
    names = sorted({*outcome, *(name for term in terms for name in term)})
    needed: list[Marginal] = [*combinations(names, 2)] if len(names) > 1 else [tuple(names)] if names else []
    needed += [tuple(sorted({*term, *outcome})) for term in terms if len({*term, *outcome}) > 2]
    return list(dict.fromkeys(needed))


def _canonical(schema: Schema, marginal: Sequence[str]) -> Marginal:
    if isinstance(marginal, str):
        raise WorkloadError(f"The marginal {marginal!r} is a text. Write it as a list: [{marginal!r}].")
    if not marginal:
        raise WorkloadError("A marginal names no column. Remove it or name its columns.")
    if len(set(marginal)) < len(marginal):
        raise WorkloadError(f"The marginal {list(marginal)} names a column twice. Name each once.")
    return tuple(sorted(marginal, key=schema.index))


def _weights(kept: Sequence[Marginal], given: Sequence[Marginal], weights: tuple[float, ...]) -> tuple[float, ...]:
    """The weights in the order of the marginals; a given marginal that a larger one takes in hands its weight on."""
    if not weights:
        return ()
    if len(weights) != len(given):
        raise WorkloadError(
            f"There are {len(weights)} weights for {len(given)} marginals. Give one for each of `marginals`, or none."
        )
    wanted = list(zip(given, weights, strict=True))
    return tuple(max([float(w) for m, w in wanted if set(m) <= set(marginal)], default=1.0) for marginal in kept)


def _refuse_nested(marginals: list[Marginal]) -> None:
    for i, j in combinations(range(len(marginals)), 2):
        first, second = sorted((marginals[i], marginals[j]), key=len)
        if first == second:
            raise WorkloadError(f"The marginal {list(first)} is listed twice. Remove one.")
        if set(first) < set(second):
            raise WorkloadError(
                f"The marginal {list(first)} is part of {list(second)}, which already tells it. Remove the smaller one."
            )


def refuse_huge(schema: Schema, marginal: Marginal) -> None:
    """Refuse a marginal whose table would not fit in memory."""
    cells = math.prod(schema.shape(marginal))
    if cells > MAX_MARGINAL_CELLS:
        raise WorkloadError(
            f"The marginal {list(marginal)} has {cells:,} cells, more than {MAX_MARGINAL_CELLS:,}. "
            "Measure smaller marginals, or declare fewer levels."
        )
