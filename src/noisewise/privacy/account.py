"""The account of a dataset: its cap, what was spent, and what is refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisewise.errors import BudgetError
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.budget import Budget
from noisewise.privacy.chain import Entry


@dataclass(frozen=True, kw_only=True)
class Account:
    """What a ledger knows about one dataset."""

    dataset: str
    """The dataset's name in the ledger."""
    cap: Budget
    """What all measurements together may cost."""
    registered: bool
    """Whether somebody set the cap for good; else it is what the first measurement asked for."""
    unit: str | None
    """The column that names the unit of protection; None for one row."""
    spent: PrivacyLoss
    """What all debits cost together."""
    debits: int
    """How many there are."""

    @property
    def epsilon(self) -> float:
        """ε of everything debited, at the cap's δ."""
        assert self.cap.delta is not None  # an account's cap is settled
        return self.spent.epsilon(self.cap.delta)


def refuse_registration(account: Account, cap: Budget, unit: str | None, max_rows_per_unit: int) -> None:
    """Refuse a second registration, and one that does not cover what was spent."""
    if account.registered:
        raise BudgetError(
            f"{account.dataset!r} is registered already, with a cap of epsilon {account.cap.epsilon:g} and delta "
            f"{account.cap.delta:g}. A cap is set once: it is the promise to the people in the data."
        )
    if not account.debits:
        return
    if (unit, max_rows_per_unit) != (account.unit, account.spent.max_rows_per_unit):
        raise BudgetError(
            f"{account.dataset!r} was measured for another unit of protection. Register that one: {_unit(account)}."
        )
    assert cap.delta is not None  # checked before
    if account.spent.delta(cap.epsilon) > cap.delta:
        raise BudgetError(
            f"{account.dataset!r} has already spent more than this cap: epsilon {account.spent.epsilon(cap.delta):g} "
            f"at delta {cap.delta:g}. Register at least that."
        )


def refuse_overdraft(path: str | Path, account: Account, loss: PrivacyLoss, unit: str | None, rows: int) -> None:
    """Refuse a measurement that protects another unit, or with which the cap would be passed."""
    if (unit, loss.max_rows_per_unit) != (account.unit, account.spent.max_rows_per_unit):
        raise BudgetError(
            f"The ledger protects another unit of {account.dataset!r} than this study: {_unit(account)}. Losses of "
            "different units do not add up. Use the same unit, and the same max_rows_per_unit. Nothing was drawn."
        )
    delta = account.cap.delta
    assert delta is not None  # an account's cap is settled
    if delta >= 1 / rows:
        raise BudgetError(
            f"The cap of {account.dataset!r} has delta {delta:g}, which is not below 1/rows: it would promise nothing. "
            "Register the dataset in another ledger file, with a smaller delta. Nothing was drawn."
        )
    together = account.spent + loss
    if together.delta(account.cap.epsilon) <= delta:
        return
    way = (
        "Its cap was registered and is final."
        if account.registered
        else "Nobody registered a cap, so it is what the first measurement asked for. If more is acceptable for the "
        f"people in the data, say so once and for all: noisewise ledger register {path} --dataset "
        f"{account.dataset!r} --epsilon … --delta {delta:g}."
    )
    raise BudgetError(
        f"The ledger {path} refuses: {account.dataset!r} has spent epsilon {account.epsilon:.6g} of "
        f"{account.cap.epsilon:g}, and with this measurement it would be {together.epsilon(delta):.6g} (delta "
        f"{delta:g}). {way} Nothing was drawn."
    )


def _unit(account: Account) -> str:
    where = "one row" if account.unit is None else f"unit {account.unit!r}"
    return f"{where}, max_rows_per_unit = {account.spent.max_rows_per_unit}"


def terms_of(cap: Budget, unit: str | None, max_rows_per_unit: int) -> dict[str, Any]:
    """The content of the entry that opens or registers an account."""
    return {"epsilon": cap.epsilon, "delta": cap.delta, "unit": unit, "max_rows_per_unit": max_rows_per_unit}


def account_of(entries: list[Entry], dataset: str) -> Account | None:
    """Add up what the entries say about a dataset; a registration comes after an opening and takes its place."""
    own = [entry for entry in entries if entry.dataset == dataset]
    terms = [entry for entry in own if entry.kind in ("opened", "registered")]
    if not terms:
        return None
    last = terms[-1].content
    debits = [entry.content for entry in own if entry.kind == "debited"]
    return Account(
        dataset=dataset,
        cap=Budget(last["epsilon"], last["delta"]),
        registered=terms[-1].kind == "registered",
        unit=last["unit"],
        spent=PrivacyLoss(
            stddevs=tuple(stddev for debit in debits for stddev in debit["stddevs"]),
            rounds=tuple(cost for debit in debits for cost in debit["rounds"]),
            max_rows_per_unit=last["max_rows_per_unit"],
        ),
        debits=len(debits),
    )
