"""`noisewise ledger`: what was spent on whose data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from noisewise.cli.app import group, say, screen

if TYPE_CHECKING:
    from noisewise.privacy.account import Account
    from noisewise.privacy.chain import Entry
    from noisewise.privacy.ledger import Ledger

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]
command = group("ledger", "See and set what may be spent on whose data. The ledger is kept by `measure` and `run`.")


@command("show")
def show_command(
    ledger: LedgerPath = Path("noisewise.ledger"),
    head: Annotated[
        str | None, typer.Option(help="A head noted earlier: checks that nothing was taken away since.")
    ] = None,
) -> None:
    """Show every lineage's account and every entry, and check that no entry was edited."""
    from noisewise.errors import BudgetError
    from noisewise.privacy.account import account_of
    from noisewise.privacy.ledger import Ledger

    entries = Ledger(ledger, "").entries()
    if head is not None and head not in {entry.seal for entry in entries}:
        raise BudgetError(f"The ledger {ledger} does not hold the head {head}: entries were taken away or rewritten.")
    accounts = [account_of(entries, lineage) for lineage in dict.fromkeys(entry.lineage for entry in entries)]
    screen.print(_accounts([account for account in accounts if account is not None]))
    screen.print(_entries(entries))
    say(f"{len(entries)} entries, each sealed by the hash of all before it; none was edited.")
    if entries:
        say(f"Head: {entries[-1].seal}\nNote it elsewhere: `--head` will tell whether entries were taken away.")


@command("register")
def register_command(
    ledger: LedgerPath,
    lineage: Annotated[str, typer.Option(help="Name of the people the table is about: as in [privacy] lineage.")],
    epsilon: Annotated[float, typer.Option(help="ε that all measurements together may cost.")],
    delta: Annotated[float, typer.Option(help="δ of all measurements together; far below 1/rows.")],
    unit: Annotated[str | None, typer.Option(help="Column that names the unit, as in [privacy] unit.")] = None,
    max_rows_per_unit: Annotated[int, typer.Option(help="As in [privacy] max_rows_per_unit.")] = 1,
) -> None:
    """Set, once and for all, what everything measured on a lineage together may cost."""
    from noisewise.privacy.budget import Budget
    from noisewise.privacy.ledger import Ledger

    account = Ledger(ledger, lineage)
    account.register(Budget(epsilon, delta), unit=unit, max_rows_per_unit=max_rows_per_unit)
    say(spent_by(account))


def spent_by(ledger: "Ledger") -> str:
    """One sentence on where an account stands."""
    account = ledger.account()
    if account is None:
        return f"Ledger {ledger.path}: nothing is known of {ledger.lineage!r}."
    kind = "registered" if account.registered else "what the first measurement asked for; nobody registered one"
    times = f"{account.debits} measurement{'' if account.debits == 1 else 's'}"
    return (
        f"Ledger {ledger.path}: {account.lineage!r} has spent ε = {account.epsilon:.4g} at "
        f"δ = {account.cap.delta:.3g}, in {times}. "
        f"The cap is ε = {account.cap.epsilon:g} ({kind})."
    )


def _accounts(accounts: list["Account"]) -> Table:
    table = Table(title="Accounts", title_justify="left")
    for column in ("lineage", "unit", "measurements", "ε spent", "ε cap", "δ", "cap is"):
        table.add_column(column)
    for account in accounts:
        unit = "one row" if account.unit is None else f"{account.unit}, at most {account.spent.max_rows_per_unit} rows"
        cells = [account.lineage, unit, str(account.debits), f"{account.epsilon:.6g}", f"{account.cap.epsilon:g}"]
        cells += [f"{account.cap.delta:.3g}", "registered" if account.registered else "as first asked"]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _entries(entries: list["Entry"]) -> Table:
    table = Table(title="Entries", title_justify="left")
    for column in ("no.", "date", "lineage", "what", "seal"):
        table.add_column(column)
    for entry in entries:
        table.add_row(
            *(Text(cell) for cell in (str(entry.number), entry.date, entry.lineage, _said(entry), entry.seal[:12]))
        )
    return table


def _said(entry: "Entry") -> str:
    content = entry.content
    if entry.kind == "debited":
        asked = content["asked"]
        occasion = f", occasion {asked['occasion']!r}" if asked["occasion"] else ""
        select = asked.get("select")
        chosen = f", {select['share']:.0%} of it for selection by {select['method']}" if select else ""
        return f"debited ε = {asked['epsilon']:g} for {len(content['stddevs'])} marginals{chosen}{occasion}"
    if entry.kind == "measured":
        return f"measured under {content['debit']}: {content['hash'][:12]}"
    return f"{entry.kind} with a cap of ε = {content['epsilon']:g}"
