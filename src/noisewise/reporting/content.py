"""What the report says: every figure and sentence, from public quantities only, ready to be laid out."""

from typing import Any

from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Manifest

_LEFT, _RIGHT, _ROW = 220, 620, 26


def report_content(manifest: Manifest, results: dict[str, Pooled]) -> dict[str, Any]:
    """Gather the report of a release; `results` are pooled analyses by title."""
    verdict = manifest.posterior.verdict if manifest.posterior else None
    return {
        "table": manifest.table,
        "datasets": manifest.synthesis.datasets if manifest.synthesis else 0,
        "promise": promise(manifest),
        "unprotected": manifest.privacy.unprotected_quantities,
        "trusted": bool(verdict and verdict.trusted),
        "summary": verdict.summary if verdict else "There is no posterior yet.",
        "reasons": verdict.reasons if verdict else (),
        "marginals": [
            {"columns": " × ".join(record.columns), "noise": f"{record.noise_stddev:,.4g}"}
            for record in manifest.marginals
        ],
        "analyses": [_analysis(title, pooled) for title, pooled in results.items()],
        "version": manifest.software["noisewise"],
    }


def promise(manifest: Manifest) -> str:
    """Say in plain words who is protected from what."""
    privacy = manifest.privacy
    return (
        f"The unit of protection is {privacy.unit}. Replacing the content of any one of the {manifest.rows:,} rows by "
        f"any other changes the probability of every possible release by a factor of at most e^{privacy.epsilon:g}, "
        f"up to a probability of {privacy.delta:.3g} (ε = {privacy.epsilon:g}, δ = {privacy.delta:.3g}; "
        f"ρ = {privacy.rho:.4g})."
    )


def _analysis(title: str, pooled: Pooled) -> dict[str, Any]:
    frame = pooled.summary_frame()
    low, high = min(0.0, float(frame["conf.low"].min())), max(0.0, float(frame["conf.high"].max()))
    scale = (_RIGHT - _LEFT) / ((high - low) or 1.0)

    def x(value: float) -> float:
        return round(_LEFT + (value - low) * scale, 1)

    rows = [
        {
            "term": row["term"],
            "short": row["term"] if len(row["term"]) <= 30 else row["term"][:29] + "…",
            "estimate": f"{row['estimate']:.4g}",
            "stderr": f"{row['std.error']:.3g}",
            "interval": f"{row['conf.low']:.4g} to {row['conf.high']:.4g}",
            "p": "< 0.001" if row["p.value"] < 0.001 else f"{row['p.value']:.3f}",
            "x": x(row["estimate"]),
            "x1": x(row["conf.low"]),
            "x2": x(row["conf.high"]),
            "y": _ROW * i + _ROW / 2,
        }
        for i, row in frame.iterrows()
    ]
    return {"title": title, "rows": rows, "height": _ROW * len(rows), "zero": x(0.0), "notes": pooled.notes}
