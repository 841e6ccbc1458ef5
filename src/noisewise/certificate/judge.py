"""From repeats to verdicts: which coverage is too low to be chance, and what else speaks against a term.

A count of hits out of r repeats is binomial with the nominal level if the interval is right. Coverage fails where so
few hits have a probability below 1 in 1,000, and is doubtful below 1 in 100; higher coverage than promised is no
fault. With 100 repeats and 95 % intervals that is 86 and 88 hits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisewise.certificate.repeat import LEVELS
from noisewise.certificate.result import CertifiedAnalysis, CertifiedTerm, LevelCoverage, Word

FAILS, DOUBTFUL = 1e-3, 1e-2
"""Probabilities of so few hits, or fewer, were the interval right."""
FEW_REPEATS = 20
"""Below this nothing can be said."""
OFTEN = 0.1
"""A share of repeats that is no longer an exception."""
LITTLE_SIGNAL = 10.0
"""An interval so many times as wide as without privacy says little."""


def judge(
    title: str, records: Sequence[Mapping[str, Any]], gaps: Sequence[str] = (), stress: str = ""
) -> CertifiedAnalysis:
    """The verdicts on one analysis, from the records of all repeats."""
    plain = [record for record in records if not record["stressed"]]
    failures = [one["failed"] for one in (record["analyses"][title] for record in records) if "failed" in one]
    normal, stressed = _by_term(title, plain), _by_term(title, [record for record in records if record["stressed"]])
    untrusted = sum(not record["trusted"] for record in plain) / max(1, len(plain))
    missed = sum("failed" in record["analyses"][title] for record in plain) / max(1, len(plain))
    how = next((one["truth"] for one in (record["analyses"][title] for record in records) if "truth" in one), "")
    return CertifiedAnalysis(
        title=title,
        terms=tuple(
            _term(term, found, stressed.get(term, []), untrusted=untrusted, missed=missed)
            for term, found in normal.items()
        ),
        failed=len(failures),
        failure=failures[0] if failures else "",
        gaps=tuple(gaps),
        stress=stress,
        truth=how,
    )


def _by_term(title: str, records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for record in sorted(records, key=lambda one: one["number"]):
        for term in record["analyses"][title].get("terms", ()):
            found.setdefault(term["term"], []).append(term)
    return found


def _term(term: str, found: list[Any], stressed: list[Any], *, untrusted: float, missed: float) -> CertifiedTerm:
    levels, under_stress = coverage(found), coverage(stressed) if stressed else ()
    errors = np.array([one["estimate"] - one["truth"] for one in found])
    reasons = _reasons(found, levels, under_stress, untrusted=untrusted, missed=missed)
    word: Word = "fails" if any(worst == "fails" for worst, _ in reasons) else "doubtful" if reasons else "holds"
    return CertifiedTerm(
        term=term,
        verdict=word,
        reasons=tuple(sentence for _, sentence in reasons),
        supported=found[0]["supported"],
        levels=levels,
        stressed=under_stress,
        truth=_figure(np.mean([one["truth"] for one in found])),
        bias=_figure(errors.mean()),
        bias_stderr=_figure(errors.std(ddof=1) / len(errors) ** 0.5 if len(errors) > 1 else 0.0),
        stderr=_figure(np.median([one["stderr"] for one in found])),
        fallbacks=sum(one["fallback"] for one in found),
        cautions=sum(one["caution"] for one in found),
    )


def coverage(found: Sequence[Mapping[str, Any]]) -> tuple[LevelCoverage, ...]:
    """Coverage of one term at every level."""
    return tuple(_level(found, number, level) for number, level in enumerate(LEVELS))


def _level(found: Sequence[Mapping[str, Any]], number: int, level: float) -> LevelCoverage:
    hits = sum(one["intervals"][number][0] <= one["truth"] <= one["intervals"][number][1] for one in found)
    known = [one for one in found if one["reference"] is not None]
    inside = [abs(one["reference"] - one["truth"]) <= one["halves"][number] for one in known]
    widths = [
        (one["intervals"][number][1] - one["intervals"][number][0]) / (2 * one["halves"][number])
        for one in known
        if one["halves"][number] > 0
    ]
    low, high = binomial_band(hits, len(found))
    return LevelCoverage(
        nominal=level,
        hits=hits,
        repeats=len(found),
        low=low,
        high=high,
        reference=_figure(np.mean(inside)) if inside else 0.0,
        width_ratio=_figure(np.median(widths)) if widths else 0.0,
    )


def binomial_band(hits: int, repeats: int, alpha: float = 0.05) -> tuple[float, float]:
    """Clopper and Pearson's interval for a probability."""
    from scipy.special import betaincinv

    low = float(betaincinv(hits, repeats - hits + 1, alpha / 2)) if hits else 0.0
    high = float(betaincinv(hits + 1, repeats - hits, 1 - alpha / 2)) if hits < repeats else 1.0
    return _figure(low), _figure(high)


def too_few(hits: int, repeats: int, level: float) -> Word | None:
    """Whether so few hits are more than chance: "fails", "doubtful", or None where they are not."""
    from scipy.special import bdtr

    chance = float(bdtr(hits, repeats, level))
    return "fails" if chance < FAILS else "doubtful" if chance < DOUBTFUL else None


def _reasons(
    found: list[Any],
    levels: Sequence[LevelCoverage],
    stressed: Sequence[LevelCoverage],
    *,
    untrusted: float,
    missed: float,
) -> list[tuple[Word, str]]:
    """Everything that speaks against a term, with how much it weighs."""
    reasons: list[tuple[Word, str]] = []
    own = levels[-1]
    if own.repeats < FEW_REPEATS:
        reasons.append(("doubtful", f"Only {own.repeats} rehearsals gave an interval: too few to tell."))
    for level in levels:
        word = too_few(level.hits, level.repeats, level.nominal)
        if word is not None:
            word = word if level is own else "doubtful"
            reasons.append((word, f"The {level.nominal:.0%} intervals held the truth in {_of(level)} rehearsals only."))
    reasons += _about_support(found[0], stressed)
    if own.width_ratio > LITTLE_SIGNAL:
        reasons.append(
            ("doubtful", f"Too little signal: its interval is {own.width_ratio:.0f} times as wide as without privacy.")
        )
    if sum(one["caution"] for one in found) > OFTEN * len(found):
        reasons.append(("doubtful", "Too few datasets: pooling had hardly any degrees of freedom. Draw more of them."))
    if sum(one["fallback"] for one in found) > OFTEN * len(found):
        many = sum(one["fallback"] for one in found)
        reasons.append(
            ("doubtful", f"Pooling needed a fallback in {many} of {len(found)} rehearsals; draw more datasets.")
        )
    if missed > OFTEN:
        reasons.append(("doubtful", f"The analysis could not be pooled in {missed:.0%} of the rehearsals."))
    if untrusted > OFTEN:
        reasons.append(("doubtful", f"The posterior failed its checks in {untrusted:.0%} of the rehearsals."))
    return reasons


def _about_support(first: Mapping[str, Any], stressed: Sequence[LevelCoverage]) -> list[tuple[Word, str]]:
    """A term that was not measured is doubtful at best; stress shows what may become of it, and of its neighbours."""
    broken = bool(stressed) and too_few(stressed[-1].hits, stressed[-1].repeats, stressed[-1].nominal) is not None
    tried = f"{_of(stressed[-1])} rehearsals" if stressed else ""
    if first["supported"] is False:
        own = " × ".join(first["variables"])
        if broken:
            sentence = (
                f"Unsupported: {own} were not measured together. Where the population has an association there, its "
                f"95 % intervals held the truth in {tried}."
            )
            return [("fails", sentence)]
        return [("doubtful", f"Unsupported: {own} were not measured together, so it shows the model's assumption.")]
    if first["supported"] is None:
        return [("doubtful", "It is not known which columns it rests on, so its support could not be checked.")]
    if broken:
        sentence = (
            f"It is adjusted for columns that were not measured together. Where these are associated, its 95 % "
            f"intervals held the truth in {tried}."
        )
        return [("doubtful", sentence)]
    return []


def _of(level: LevelCoverage) -> str:
    return f"{level.hits} of {level.repeats}"


def _figure(value: Any) -> float:
    """Six significant digits."""
    return float(f"{float(value):.6g}")
