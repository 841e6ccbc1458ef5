"""What a release can support: which of the formula's columns were measured together.

Synthetic data answer every question, including those about which nothing was measured. Then the answer
is the model's default, independence, with an interval that describes that default. This check says so
before the interval is read.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

from noisewise.errors import AnalysisError, WorkloadError
from noisewise.workload import Marginal, marginals_for

MOST_LISTED = 12
"""Most sets of columns named in the verdict; of more only the number is told, and the gaps."""
UNKNOWN = "Not checked whether the release supports this analysis: its measured marginals or formula are unknown."


class Standing(Enum):
    """How a set of columns stands to the measured marginals."""

    MEASURED = "measured together"
    PAIRWISE = "measured pair by pair only"
    CONNECTED = "connected through other columns only"
    UNCONNECTED = "not connected"
    ABSENT = "not measured"


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A set of columns that the analysis relates, and how it was measured."""

    columns: Marginal
    """The columns."""
    standing: Standing
    """How they stand to the measured marginals."""
    through: tuple[str, ...] = ()
    """For two connected columns, a shortest chain of columns between them."""

    @property
    def supported(self) -> bool:
        """Whether the data, rather than the model's assumptions, speak about these columns together."""
        return self.standing is Standing.MEASURED

    @property
    def sentence(self) -> str:
        """What the standing means for an interval, in plain words."""
        return f"{' × '.join(self.columns)}: {self.standing.value}{self._meaning()}"

    def _meaning(self) -> str:
        name = ":".join(self.columns)
        if self.standing is Standing.MEASURED:
            return "."
        if self.standing is Standing.PAIRWISE:
            return (
                f"; an interval for the interaction {name} describes the model's assumption of no such interaction, "
                "not the data."
            )
        if self.standing is Standing.CONNECTED:
            given = f" given {', '.join(self.through)}" if self.through else " given the columns between them"
            return (
                f"; an interval for {name} describes the model's assumption of conditional independence{given}, "
                "not the data."
            )
        if self.standing is Standing.UNCONNECTED:
            return f"; the model makes them independent, and an interval for {name} describes that, not the data."
        return "; nothing about it was measured, and its values are the model's default."


@dataclass(frozen=True, kw_only=True)
class Support:
    """The verdict on an analysis: every relation it rests on, with its standing."""

    relations: tuple[Relation, ...]
    """The pairs (and triples, for interactions) that the analysis rests on."""
    marginals: tuple[Marginal, ...]
    """The marginals that were measured."""

    @property
    def supported(self) -> bool:
        """Whether everything the analysis rests on was measured."""
        return all(relation.supported for relation in self.relations)

    @property
    def gaps(self) -> tuple[Relation, ...]:
        """The relations that were not measured."""
        return tuple(relation for relation in self.relations if not relation.supported)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in plain words: what was measured together, then every gap and what it means."""
        measured = [" × ".join(relation.columns) for relation in self.relations if relation.supported]
        count = f"{len(measured)} of {len(self.relations)} sets of columns that it relates"
        listed = ", ".join(measured) if len(measured) <= MOST_LISTED else count
        if not self.gaps:
            return (f"Supported by the release. Measured together: {listed}.",)
        head = f"Measured together: {listed}. Not so:" if measured else "Nothing that it relates was measured together:"
        return (f"NOT fully supported by the release. {head}", *(relation.sentence for relation in self.gaps))

    def unsupported_terms(self, variables: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """The terms whose own columns, the outcome's included, were not measured together."""
        return tuple(
            term for term, columns in variables.items() if not relation_of(tuple(columns), self.marginals).supported
        )

    def __str__(self) -> str:
        return "\n  ".join(self.sentences)


def check_support(formula: str, marginals: Iterable[Sequence[str]]) -> Support:
    """Compare what a formula needs with what was measured.

    A regression of y on a and b needs the pairs (y, a), (y, b) and (a, b); an interaction a:b needs the
    triple. The same list, asked for before measuring, is `noisewise.workload.marginals_for(formula)`.
    """
    measured = tuple(tuple(marginal) for marginal in marginals)
    try:
        needed = marginals_for(formula)
    except WorkloadError as error:
        raise AnalysisError(str(error)) from None
    relations = tuple(relation_of(columns, measured) for columns in needed)
    return Support(relations=relations, marginals=measured)


def relation_of(columns: Marginal, marginals: Sequence[Marginal]) -> Relation:
    """How a set of columns stands to the measured marginals."""
    wanted = set(columns)
    if any(wanted <= set(marginal) for marginal in marginals):
        return Relation(columns=columns, standing=Standing.MEASURED)
    if any(not any(name in marginal for marginal in marginals) for name in columns):
        return Relation(columns=columns, standing=Standing.ABSENT)
    pairs = [set(pair) for pair in combinations(columns, 2)]
    if len(columns) > 2 and all(any(pair <= set(marginal) for marginal in marginals) for pair in pairs):
        return Relation(columns=columns, standing=Standing.PAIRWISE)
    chains = [_chain(first, second, marginals) for first, second in combinations(columns, 2)]
    if any(chain is None for chain in chains):
        return Relation(columns=columns, standing=Standing.UNCONNECTED)
    through = chains[0] if len(columns) == 2 and chains[0] is not None else ()
    return Relation(columns=columns, standing=Standing.CONNECTED, through=through)


def support_of(
    datasets: Any, rests_on: str, marginals: Sequence[Sequence[str]] | None, *, strict: bool = False
) -> Support | None:
    """The verdict where the measured marginals and the formula are known; with `strict` it must be good."""
    measured = marginals if marginals is not None else getattr(datasets, "marginals", None)
    support = check_support(rests_on, measured) if measured is not None and rests_on else None
    if strict and support is None:
        raise AnalysisError(
            "strict needs to know which marginals were measured and which columns the analysis uses. "
            "Give marginals=, and a formula to the estimator."
        )
    if strict and support is not None:
        require_support(support)
    return support


def require_support(support: Support) -> None:
    """Refuse an analysis that rests on anything unmeasured."""
    if not support.supported:
        gaps = "\n".join(f"  {relation.sentence}" for relation in support.gaps)
        raise AnalysisError(
            f"The release does not support this analysis, and strict is on:\n{gaps}\n"
            "Change the formula, ask the data holder to measure these marginals, or turn strict off and read the "
            "marked terms as the model's assumptions."
        )


def _chain(start: str, goal: str, marginals: Sequence[Marginal]) -> tuple[str, ...] | None:
    """The columns strictly between two columns on a shortest chain of marginals; None if there is no chain."""
    before: dict[str, str] = {start: start}
    queue = deque([start])
    while queue and goal not in before:
        here = queue.popleft()
        for neighbour in sorted({name for marginal in marginals if here in marginal for name in marginal}):
            if neighbour not in before:
                before[neighbour] = here
                queue.append(neighbour)
    if goal not in before:
        return None
    chain = [goal]
    while chain[-1] != start:
        chain.append(before[chain[-1]])
    return tuple(reversed(chain[1:-1]))
