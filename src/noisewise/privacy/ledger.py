"""The ledger: what was spent on whose data, on disk, so that no budget is spent twice.

Each lineage (the people a table is about) has an account with a cap. A measurement goes through these steps, and may
die at any of them:

    debit            one entry, on the disk before anything is drawn; refused if the cap would be passed
    draw and store   in one transaction: either the noisy counts are in the ledger for good, or nothing is
    give out         what the ledger holds, and only that

Asked the same again (after a crash, into another folder, by two processes at once), the ledger gives out what it
holds: nothing is drawn, nothing is spent. A debit whose draw was lost is gone on with. That is sound because nobody
saw what was lost, and because the loss did not depend on it: what is stored has the same size whatever was drawn.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from noisewise.confidential.addresses import split_table
from noisewise.errors import BudgetError
from noisewise.noisy_counts import Measurement, NoisyCounts, PrivacyStatement
from noisewise.privacy.account import Account, account_of, refuse_overdraft, refuse_registration, terms_of
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.budget import Budget
from noisewise.privacy.chain import Chain, Entry, opened
from noisewise.schema import Numeric, Schema


@dataclass(frozen=True)
class Ledger:
    """The account of a lineage in a ledger file: give it to `measure`.

    A lineage is the people a table is about. Extracts, corrected versions and later waves of the same table belong to
    the same account, because what is released about the same people adds up.

    >>> ledger = Ledger("people.ledger", "people")
    """

    path: str | Path
    """The ledger file (SQLite); it is made where there is none."""
    lineage: str
    """The lineage's name."""
    occasion: str = ""
    """Which measurement this is. The same question on the same occasion is answered from the ledger; a new occasion
    asks for new noise, and is paid for."""

    def register(self, cap: Budget, *, unit: str | None = None, max_rows_per_unit: int = 1) -> Account:
        """Set once and for all what everything measured on this lineage may cost together."""
        if cap.delta is None:
            raise BudgetError("A cap needs its delta: far below 1/rows, such as 1e-9. Give one.")
        terms = terms_of(cap, unit, max_rows_per_unit)
        with opened(Path(self.path)) as chain, chain.writing():
            account = account_of(chain.entries(), self.lineage)
            if account is not None:
                refuse_registration(account, cap, unit, max_rows_per_unit)
            chain.append(self.lineage, "registered", terms)
            return self._found(chain)

    def agree(self, cap: Budget, *, unit: str | None = None, max_rows_per_unit: int = 1) -> None:
        """Register this cap, or make sure that it is the one that was registered."""
        with opened(Path(self.path)) as chain:
            account = account_of(chain.entries(), self.lineage)
        if account is None or not account.registered:
            self.register(cap, unit=unit, max_rows_per_unit=max_rows_per_unit)
        elif account.cap != cap:
            raise BudgetError(
                f"The study's cap is epsilon {cap.epsilon:g}, delta {cap.delta:g}; the ledger {self.path} has "
                f"registered epsilon {account.cap.epsilon:g}, delta {account.cap.delta:g} for {self.lineage!r}, for "
                "good. Correct the study's [privacy] cap."
            )

    def account(self) -> Account | None:
        """What the ledger knows about this lineage; None if nothing."""
        with opened(Path(self.path), create=False) as chain:
            return account_of(chain.entries(), self.lineage)

    def entries(self) -> list[Entry]:
        """All entries of the file, oldest first, their seals checked."""
        with opened(Path(self.path), create=False) as chain:
            return chain.entries()

    def measured(self, schema: Schema, content_hash: str) -> NoisyCounts:
        """The noisy counts of this lineage whose `hash` is this."""
        with opened(Path(self.path), create=False) as chain:
            for entry in chain.entries():
                if (entry.kind, entry.lineage, entry.content.get("hash")) == ("measured", self.lineage, content_hash):
                    counts = _stored(chain, entry.content["debit"], schema)
                    assert counts is not None  # its entry is there
                    return counts
        raise BudgetError(f"{self.path} has no such noisy counts. Measure again: what is debited costs nothing more.")

    def once(
        self,
        asked: Mapping[str, Any],
        loss: PrivacyLoss,
        budget: Budget,
        schema: Schema,
        draw: Callable[[], NoisyCounts],
        *,
        unit: str | None = None,
    ) -> NoisyCounts:
        """Debit `loss`, draw, store and give out; or give out what is stored under the same question.

        `asked` is everything public that tells one measurement from another. `budget` becomes the cap of a lineage
        that the ledger does not know yet.
        """
        question = {**asked, "occasion": self.occasion}
        with opened(Path(self.path)) as chain:
            with chain.writing():
                debit = self._debited(chain, question, loss, budget, unit)
            with chain.writing():  # whoever else asks the same waits here, and finds the answer
                counts = _stored(chain, debit.number, schema)
                if counts is None:
                    counts = draw()
                    chain.keep(debit.number, [_block(m.values) for m in counts.measurements])
                    chain.append(self.lineage, "measured", {"debit": debit.number, **_described(counts, schema)})
        return counts

    def _debited(
        self, chain: Chain, question: Mapping[str, Any], loss: PrivacyLoss, budget: Budget, unit: str | None
    ) -> Entry:
        fingerprint = _fingerprint(question)
        entries = chain.entries()
        for entry in entries:
            if (entry.kind, entry.lineage, entry.content.get("question")) == ("debited", self.lineage, fingerprint):
                return entry
        account = account_of(entries, self.lineage)
        if account is None:
            chain.append(self.lineage, "opened", terms_of(budget, unit, loss.max_rows_per_unit))
            account = self._found(chain)
        refuse_overdraft(self.path, account, loss, unit, int(question["rows"]))
        content = {
            "question": fingerprint,
            "asked": dict(question),
            "stddevs": list(loss.stddevs),
            "rounds": list(loss.rounds),
        }
        return chain.append(self.lineage, "debited", content)

    def _found(self, chain: Chain) -> Account:
        account = account_of(chain.entries(), self.lineage)
        assert account is not None  # it was just written
        return account


def lineage_of(source: str, folder: Path) -> str:
    """A name for a source when nobody gave one: its place, seen from the ledger's folder, and never a password."""
    if "://" in source:
        server, table = split_table(source)
        address = urlsplit(server)
        where = address.netloc.rpartition("@")[2] + address.path.partition(";")[0].rstrip("/")
        table = table or parse_qs(address.query).get("table", [""])[0]
        return f"{address.scheme}://{where}" + (f"::{table}" if table else "")
    path, *rest = source.partition("::")
    place = Path(path).resolve()
    return (place.relative_to(folder).as_posix() if place.is_relative_to(folder) else str(place)) + "".join(rest)


def _fingerprint(question: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(question, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _described(counts: NoisyCounts, schema: Schema) -> dict[str, Any]:
    """Everything about noisy counts but the counts, which lie beside, and the schema, of which the user has a copy."""
    bought = {column.name: counts.schema.column(column.name) for column in schema.to_be_bought}
    return {
        "hash": counts.hash,
        "edges": {name: list(column.edges) for name, column in bought.items() if isinstance(column, Numeric)},
        "rows": counts.rows,
        "privacy": counts.privacy.model_dump(mode="json"),
        "measurements": [{"columns": list(m.marginal), "stddev": m.stddev} for m in counts.measurements],
    }


def _block(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values, "<i8").tobytes()


def _stored(chain: Chain, debit: int, schema: Schema) -> NoisyCounts | None:
    """The noisy counts that are stored under a debit, checked against what its entry says of them."""
    answers = [e.content for e in chain.entries() if e.kind == "measured" and e.content["debit"] == debit]
    if not answers:
        return None
    content, blocks = answers[0], chain.kept(debit)
    schema = schema.with_edges({name: tuple(edges) for name, edges in content["edges"].items()})
    try:
        measurements = tuple(
            Measurement(
                marginal=tuple(described["columns"]),
                values=np.frombuffer(block, "<i8").astype(np.int64).reshape(schema.shape(tuple(described["columns"]))),
                stddev=described["stddev"],
            )
            for described, block in zip(content["measurements"], blocks, strict=True)
        )
    except ValueError:
        measurements = ()
    privacy = PrivacyStatement.model_validate(content["privacy"])
    counts = NoisyCounts(schema=schema, rows=content["rows"], measurements=measurements, privacy=privacy)
    if counts.hash != content["hash"]:
        raise BudgetError(
            f"The noisy counts under entry {debit} of {chain.path} are not those that were measured. Nothing was "
            "drawn. Restore the ledger from a copy."
        )
    return counts
