"""`noisewise report` writes the page for people; `noisewise show` puts the gist of it on the terminal."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisewise.artifacts import read_release
from noisewise.artifacts.timing import read_timing
from noisewise.cli.app import Debug, ReleaseFolder, command, notices, say, screen, shown_progress, to_change
from noisewise.errors import AnalysisError

if TYPE_CHECKING:
    from noisewise.artifacts import Release


@command("report")
def report_command(
    release: ReleaseFolder,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report's content as JSON, and write nothing.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write the page there, and leave the release as it is.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the release's report: one page for people, without network or scripts, and report.json for programs.

    With --output the page goes elsewhere and the release stays as it is, because it is signed or a zip file. That page
    also says how long the fit took, if it was made here.
    """
    if as_json:
        from noisewise.reporting.content import as_json as written

        target = read_release(release)
        screen.file.write(written(target.report_content() or _content(target)).decode())
        return
    if output is not None:
        _write_elsewhere(read_release(release), output)
        return
    from noisewise.study import write_report

    target = to_change(release)
    with shown_progress() as progress:
        outcome = write_report(target, progress)
    say(f"Report: {outcome.report}")
    say_failures(outcome.failed)


@command("show")
def show_command(release: ReleaseFolder, debug: Debug = False) -> None:
    """Show a release on the terminal: whether it is fit for use, its noise by marginal, its results as pictures."""
    from noisewise.reporting.terminal import shown

    target = read_release(release)
    content = target.report_content() or _content(target)
    timing = read_timing(target.folder, target.posterior().hash) if content["posterior"] else None
    for part in shown(content, timing.words if timing else ""):
        screen.print(part)


def _write_elsewhere(target: "Release", page: Path) -> None:
    from noisewise.reporting.report import report_elsewhere

    results, failed = _analysed(target)
    say(f"Report: {report_elsewhere(target, page, results, failed)}")
    say_failures(failed)


def _content(target: "Release") -> dict[str, Any]:
    """The content afresh, for a release without report.json."""
    from noisewise.reporting.content import as_json, report_content

    return dict(json.loads(as_json(report_content(target, *_analysed(target)))))


def _analysed(target: "Release") -> tuple[dict[str, Any], dict[str, str]]:
    from noisewise.study import analyze_each

    manifest = target.manifest()
    with shown_progress() as progress:
        return analyze_each(target, manifest.analyses if manifest.synthesis else (), progress)


def say_failures(failed: Mapping[str, str]) -> None:
    """Tell which analyses could not be pooled, and why; the command then ends with the exit code of an analysis."""
    for title, reason in failed.items():
        notices.print(f"{title} could not be pooled. {reason}", markup=False, style="red")
    if failed:
        raise typer.Exit(AnalysisError.exit_code)
