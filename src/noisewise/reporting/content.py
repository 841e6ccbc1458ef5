"""What the report says: every figure and sentence, from public quantities only, as plain values.

The page is laid out from this and the JSON file is this. It holds no time, no path and nothing about the machine, so
that the same release gives the same bytes.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Release
from noisewise.reporting.fitness import posterior_content
from noisewise.reporting.glossary import GLOSSARY
from noisewise.reporting.headline import headline_content
from noisewise.reporting.measurements import measured_content, measured_pairs
from noisewise.reporting.results import result_content
from noisewise.reporting.snippets import snippets

FORMAT, VERSION = "noisewise-report", 1


def report_content(
    release: Release, results: Mapping[str, Pooled], failed: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Gather the report of a release; `results` are pooled analyses by title, `failed` why others were not pooled."""
    manifest, noisy_counts = release.manifest(), release.noisy_counts()
    posterior = release.posterior() if manifest.posterior is not None else None
    measured = measured_content(noisy_counts, posterior)
    analysed = [result_content(title, pooled) for title, pooled in results.items()]
    certificate = release.certificate()
    certified = None if certificate is None else certificate.model_dump(mode="json")
    return {
        "format": FORMAT,
        "version": VERSION,
        "table": manifest.table,
        "rows": manifest.rows,
        "datasets": manifest.synthesis.datasets if manifest.synthesis else 0,
        "dataset_rows": manifest.synthesis.rows if manifest.synthesis else 0,
        "headline": headline_content(manifest, measured["marginals"], analysed, failed or {}, certified),
        "measurements": measured,
        "posterior": posterior_content(posterior) if posterior is not None else None,
        "results": analysed,
        "failed": [{"title": title, "reason": reason} for title, reason in (failed or {}).items()],
        "certificate": certified,
        "use": snippets(
            noisy_counts.schema,
            manifest.analyses,
            measured_pairs(noisy_counts),
            manifest.synthesis.rows if manifest.synthesis else manifest.rows,
            manifest.rows,
        ),
        "glossary": [{"word": word, "meaning": meaning} for word, meaning in GLOSSARY],
    }


def as_json(content: Mapping[str, Any]) -> bytes:
    """The content as a file: equal contents give equal bytes. An end that an interval has not is null."""
    return (json.dumps(_bounded(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _bounded(value: Any) -> Any:
    """The same value with null for infinity, for which JSON has no word; NaN stays, and is refused."""
    if isinstance(value, Mapping):
        return {key: _bounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(inner) for inner in value]
    return None if isinstance(value, float) and math.isinf(value) else value
