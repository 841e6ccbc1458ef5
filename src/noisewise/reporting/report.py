"""`report`: one page for people about a release, and its content as JSON, written into it."""

from collections.abc import Mapping
from pathlib import Path

from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Release
from noisewise.artifacts.files import write
from noisewise.artifacts.timing import read_timing
from noisewise.errors import ReleaseError
from noisewise.reporting.content import as_json, report_content
from noisewise.reporting.html import render


def report(
    release: Release, results: Mapping[str, Pooled] | None = None, failed: Mapping[str, str] | None = None
) -> Path:
    """Write the release's report: one self-contained HTML page; `results` are pooled analyses by title.

    `failed` says, by title, why an analysis could not be pooled.

    The page says what is promised to whom, whether the release is fit for use and for what, what was measured with
    how much noise, how the posterior was checked, and the intervals of the analyses given; report.json holds the
    same. The same release gives the same bytes. Returns the page's path.
    """
    content = report_content(release, results or {}, failed or {})
    return release.write_report(render(content), as_json(content))


def report_elsewhere(
    release: Release, page: Path, results: Mapping[str, Pooled], failed: Mapping[str, str] | None = None
) -> Path:
    """Write the page to a file of its own and leave the release as it is, for instance because it is signed.

    This page may say how long the fit took, where that is known here. Returns the page's path.
    """
    if page.resolve().is_relative_to(release.folder.resolve()):
        raise ReleaseError(f"{page} is inside the release, which would change it. Give a place outside.")
    content = report_content(release, results, failed or {})
    if content["posterior"] is not None:
        timing = read_timing(release.folder, release.posterior().hash)
        content["posterior"]["time"] = None if timing is None else timing.words
    write(page, render(content).encode())
    return page
