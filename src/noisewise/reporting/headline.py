"""The report's first screen: what was protected, whether the release is fit for use, and for what."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from noisewise.analysis.support import check_support
from noisewise.artifacts import Manifest

FIT, CARE, UNFIT, UNFINISHED = "Fit for use", "Use with care", "Not fit for use", "Not finished"
LEVELS = {FIT: "good", CARE: "care", UNFIT: "bad", UNFINISHED: "care"}
"""The colour that goes with each word."""
MOSTLY_LOST = 0.5
"""A marginal is called mostly noise when more than this share of its cells is lost in it."""


def headline_content(
    manifest: Manifest,
    marginals: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    failed: Mapping[str, str],
    certificate: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Gather the first screen."""
    word, reasons = verdict(manifest, marginals, results, failed, certificate)
    privacy = manifest.privacy
    return {
        "verdict": word,
        "level": LEVELS[word],
        "reasons": reasons,
        "promise": promise(manifest),
        "unit": privacy.unit,
        "neighbours": "any two tables that differ in the content of one such unit; the number of rows is the same",
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "rho": privacy.rho,
        "accountant": privacy.accountant,
        "steps": [
            {"name": step.name, "mechanism": step.mechanism, "rho": step.rho, "detail": step.detail}
            for step in privacy.steps
        ],
        "public": list(privacy.unprotected_quantities),
        "analyses": [_standing(analysis, manifest) for analysis in manifest.analyses],
        "citation": citation(manifest),
        "fingerprint": manifest.noisy_counts_hash,
        "software": dict(sorted(manifest.software.items())),
    }


def verdict(
    manifest: Manifest,
    marginals: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    failed: Mapping[str, str],
    certificate: Mapping[str, Any] | None,
) -> tuple[str, list[str]]:
    """The word for the whole release, and its reasons."""
    if manifest.posterior is None:
        return UNFINISHED, ["There is no posterior yet: the noisy counts have been measured and nothing was fitted."]
    if not manifest.posterior.verdict.trusted:
        reasons = ["The posterior failed its checks, so intervals need not cover.", *manifest.posterior.verdict.reasons]
        return UNFIT, reasons
    if manifest.synthesis is None:
        return UNFINISHED, ["There are no synthetic datasets yet."]
    doubts = [*_about_noise(marginals), *_about_results(results), *_about_certificate(certificate)]
    doubts += [f"{title} could not be pooled; the results say why." for title in failed]
    if doubts:
        return CARE, doubts
    reasons = [f"The posterior passed its checks. {manifest.posterior.verdict.summary}"]
    if results:
        reasons.append("Everything the intended analyses rest on was measured.")
    if certificate:
        reasons.append("The coverage certificate holds for every term.")
    return FIT, reasons


def _about_noise(marginals: Sequence[Mapping[str, Any]]) -> list[str]:
    lost = [m for m in marginals if m["lost"] is not None and m["lost"] > MOSTLY_LOST * m["cells"]]
    return [
        f"{' × '.join(m['columns'])}: {m['lost']} of {m['cells']} cells are lost in the privacy noise, so the release "
        "says little about how these columns go together."
        for m in lost
    ]


def _about_results(results: Sequence[Mapping[str, Any]]) -> list[str]:
    doubts = []
    for result in results:
        unsupported = [row["term"] for row in result["rows"] if row["supported"] is False]
        if unsupported:
            doubts.append(
                f"{result['title']}: {', '.join(unsupported)} describes an assumption of the model, not the data (†)."
            )
        elif result["support"] and not result["support"]["supported"]:
            doubts.append(f"{result['title']} rests in part on columns that were not measured together.")
        fallen = [row["term"] for row in result["rows"] if row["fallback"]]
        if fallen:
            doubts.append(f"{result['title']}: pooling needed a fallback for {', '.join(fallen)} (‡).")
    return doubts


def _about_certificate(certificate: Mapping[str, Any] | None) -> list[str]:
    if certificate is None:
        return []
    doubts = []
    for analysis in certificate["analyses"]:
        for word in ("fails", "doubtful"):
            terms = [term["term"] for term in analysis["terms"] if term["verdict"] == word]
            if terms:
                doubts.append(f"The coverage certificate of {analysis['title']}: {', '.join(terms)}: {word}.")
    return doubts


def _standing(analysis: Mapping[str, str], manifest: Manifest) -> dict[str, Any]:
    """Whether an intended analysis is supported by what was measured."""
    support = check_support(analysis["formula"], [record.columns for record in manifest.marginals])
    word = "supported" if support.supported else "supported in part"
    return {
        "formula": analysis["formula"],
        "model": analysis.get("model", ""),
        "word": word,
        "level": "good" if support.supported else "care",
        "gaps": [relation.sentence for relation in support.gaps],
    }


def promise(manifest: Manifest) -> str:
    """Say in plain words who is protected from what."""
    privacy, delta = manifest.privacy, power(f"{manifest.privacy.delta:.3g}")
    rows = f"any one of the {manifest.rows:,} rows"
    replaced = rows if privacy.max_rows_per_unit == 1 else f"{privacy.unit} (at most {privacy.max_rows_per_unit} rows)"
    return (
        f"The unit of protection is {privacy.unit}. Replacing the content of {replaced} by "
        f"any other changes the probability of every possible release by a factor of at most e^{privacy.epsilon:g}"
        f"{_factor(privacy.epsilon)}, "
        f"up to a probability of {delta} (ε = {privacy.epsilon:g}, δ = {delta}; "
        f"ρ = {privacy.rho:.4g})."
    )


def _factor(epsilon: float) -> str:
    """The factor itself, where it is a number that says something."""
    factor = math.exp(min(epsilon, 20.0))
    return "" if epsilon > 10 else f" = {factor:,.0f}" if factor >= 100 else f" = {factor:.3g}"


def power(shown: str) -> str:
    """A formatted number with a true minus, and with its power of ten written as people write it."""
    mantissa, _, exponent = shown.partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")) if exponent else ""
    return mantissa.replace("-", "−") + (f" × 10{raised}" if raised else "")


def citation(manifest: Manifest) -> str:
    """How to cite the release, in a sentence that names what cannot change."""
    drawn = manifest.synthesis
    what = f"{drawn.datasets} synthetic datasets of {drawn.rows:,} rows" if drawn else "noisy counts"
    return (
        f"“{manifest.table}”: {what} with differential privacy (ε = {manifest.privacy.epsilon:g}, "
        f"δ = {power(f'{manifest.privacy.delta:.3g}')}), made with noisewise {manifest.software['noisewise']}. "
        f"Noisy counts {manifest.noisy_counts_hash[:16]}."
    )
