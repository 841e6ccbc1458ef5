"""The analyses: pooled intervals, what one dataset taken for real would have said, and every mark with its reason."""

from typing import Any

import numpy as np

from noisewise.analysis.pooled import Pooled
from noisewise.analysis.support import Support
from noisewise.noisy_counts import WITHIN
from noisewise.reporting.measurements import figure

_ON_A_COLUMN = "lost:"  # a note on a column that the report's tables do not have
UNSUPPORTED, FELL_BACK, CAREFUL = "†", "‡", "!"


def result_content(title: str, pooled: Pooled) -> dict[str, Any]:
    """One analysis as plain values."""
    frame = pooled.summary_frame()
    rows = [_row(pooled, number, row) for number, row in enumerate(frame.to_dict("records"))]
    gaps = [relation.sentence for relation in pooled.support.gaps] if pooled.support is not None else []
    shares = [row["naive_share"] for row in rows if row["naive_share"] is not None]
    return {
        "title": title,
        "what": pooled.estimates.title or title,
        "rule": pooled.rule.name,
        "estimand": pooled.estimand,
        "datasets": pooled.datasets,
        "rows": rows,
        "support": support_content(pooled.support),
        "left_out": dict(pooled.left_out),
        "notes": [note for note in pooled.notes if note not in gaps and not note.startswith(_ON_A_COLUMN)],
        "naive_share": figure(float(np.mean(shares)), 3) if shares else None,
    }


def support_content(support: Support | None) -> dict[str, Any] | None:
    """What an analysis rests on, and which of it was measured."""
    if support is None:
        return None
    return {
        "supported": support.supported,
        "gaps": [relation.sentence for relation in support.gaps],
        "measured": [" × ".join(relation.columns) for relation in support.relations if relation.supported],
    }


def _row(pooled: Pooled, number: int, row: dict[str, Any]) -> dict[str, Any]:
    term = pooled.terms[number]
    supported = None if pooled.support is None else term not in pooled.unsupported
    fallback, caution = pooled.fallbacks.get(term, ""), pooled.cautions.get(term, "")
    marks = [(UNSUPPORTED, supported is False), (FELL_BACK, bool(fallback)), (CAREFUL, bool(caution))]
    naive, share = _naive(pooled, number)
    return {
        "term": term,
        "estimate": figure(row["estimate"]),
        "stderr": figure(row["std.error"]),
        "low": figure(row["conf.low"]),
        "high": figure(row["conf.high"]),
        "p": figure(row["p.value"], 3),
        "dof": None if not np.isfinite(row["df"]) else figure(row["df"], 4),
        "supported": supported,
        "fallback": fallback,
        "caution": caution,
        "marks": " ".join(mark for mark, holds in marks if holds),
        "naive": naive,
        "naive_share": share,
    }


def _naive(pooled: Pooled, term: int) -> tuple[dict[str, float] | None, float | None]:
    """The interval from the first dataset as if it were real, and how many such intervals hold the pooled estimate."""
    used = np.flatnonzero(pooled.estimates.used[:, term])
    if not used.size:
        return None, None
    values = pooled.estimates.values[used, term]
    half = WITHIN * np.sqrt(np.maximum(pooled.estimates.variances[used, term], 0))
    hold = float((np.abs(values - pooled.pooled[term].estimate) <= half).mean())
    first = {"estimate": values[0], "low": values[0] - half[0], "high": values[0] + half[0]}
    return {name: figure(value) for name, value in first.items()}, figure(hold, 3)
