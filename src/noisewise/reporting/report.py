"""`report`: one page for people about a release, written into it."""

from collections.abc import Mapping
from pathlib import Path

from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Release
from noisewise.reporting.content import report_content
from noisewise.reporting.html import render


def report(release: Release, results: Mapping[str, Pooled] | None = None) -> Path:
    """Write the release's report: one self-contained HTML page; `results` are pooled analyses by title.

    The page says what is promised to whom, whether the posterior may be used, what was measured with how much
    noise, and the intervals of the analyses given. Returns its path.
    """
    return release.write_report(render(report_content(release.manifest(), dict(results or {}))))
