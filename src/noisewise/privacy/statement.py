"""The privacy statement: written from the planned acts before anything is drawn, and read back into what they cost.

Every number that the claim rests on is in it: the noise of each marginal, ε of each draw of the exponential
mechanism, and the rows per unit. `loss_of` turns them into a `PrivacyLoss`, from which anybody derives ρ and ε(δ).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from noisewise.errors import BudgetError
from noisewise.noisy_counts import PrivacyStatement, PrivacyStep
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.budget import Budget
from noisewise.privacy.division import together

ACCOUNTANT = "exact privacy loss of the discrete Gaussian, rounded up; proved upper bounds elsewhere"


@dataclass(frozen=True, kw_only=True)
class Act:
    """One private act that is planned: its name, what it costs, and a sentence for people."""

    name: str
    """What is done."""
    loss: PrivacyLoss
    """What it costs."""
    detail: str
    """One sentence for people."""
    share: float = 1.0
    """Its share of the budget, as a part of 1."""
    kept: bool = True
    """Whether the marginals it measures are among the release's measurements."""

    def step(self) -> PrivacyStep:
        """The act as a line of the statement."""
        noise, choices = bool(self.loss.stddevs), bool(self.loss.rounds)
        pure = sum(self.loss.rounds) if choices and not noise else None
        mechanisms = [*["discrete Gaussian"] * noise, *["exponential mechanism"] * choices]
        return PrivacyStep(
            name=self.name,
            mechanism=" and ".join(mechanisms),
            rho=self.loss.rho,
            epsilon=pure,
            stddevs=self.loss.stddevs,
            rounds=self.loss.rounds,
            share=self.share,
            kept=self.kept,
            detail=self.detail,
        )


def statement_of(acts: Sequence[Act], settled: Budget, unit: str | None) -> PrivacyStatement:
    """The statement on a plan of acts under a settled budget; a plan that costs more is refused."""
    assert settled.delta is not None  # resolved
    whole = together([act.loss for act in acts])
    if whole.delta(settled.epsilon) > settled.delta:
        raise BudgetError(f"The noise would cost more than epsilon {settled.epsilon:g}. Nothing was drawn.")
    return PrivacyStatement(
        epsilon=min(settled.epsilon, whole.epsilon(settled.delta)),
        delta=settled.delta,
        rho=whole.rho,
        unit="one row" if unit is None else f"all rows that share a value of {unit!r}",
        max_rows_per_unit=whole.max_rows_per_unit,
        accountant=ACCOUNTANT,
        steps=tuple(act.step() for act in acts),
    )


def loss_of(statement: PrivacyStatement) -> PrivacyLoss:
    """What a statement's steps cost together, by their own numbers and not by what the statement claims."""
    rows = statement.max_rows_per_unit
    return together(
        [PrivacyLoss(stddevs=step.stddevs, rounds=step.rounds, max_rows_per_unit=rows) for step in statement.steps]
    )
