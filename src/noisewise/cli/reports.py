"""`noisewise report` writes the page for people; `noisewise show` puts the gist of it on the terminal."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noisewise.artifacts import read_release
from noisewise.cli.app import Debug, ReleaseFolder, command, existing, notices, say, screen, shown_progress
from noisewise.errors import AnalysisError

if TYPE_CHECKING:
    from noisewise.artifacts import Release


@command("report")
def report_command(
    release: ReleaseFolder,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report's content as JSON, and write nothing.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Write the release's report: one page for people, without network or scripts, and report.json for programs."""
    if as_json:
        from noisewise.reporting.content import as_json as written

        target = read_release(release)
        screen.file.write(written(target.report_content() or _content(target)).decode())
        return
    from noisewise.study import write_report

    target = existing(release)
    with shown_progress() as progress:
        outcome = write_report(target, progress)
    say(f"Report: {outcome.report}")
    say_failures(outcome.failed)


@command("show")
def show_command(release: ReleaseFolder, debug: Debug = False) -> None:
    """Show a release on the terminal: whether it is fit for use, its noise by marginal, its results as pictures."""
    from noisewise.reporting.terminal import shown

    target = read_release(release)
    for part in shown(target.report_content() or _content(target)):
        screen.print(part)


def _content(target: "Release") -> dict[str, Any]:
    """The content afresh, for a release without report.json."""
    from noisewise.reporting.content import as_json, report_content
    from noisewise.study import analyze_each

    with shown_progress() as progress:
        results, failed = analyze_each(
            target, target.manifest().analyses if target.manifest().synthesis else (), progress
        )
    return dict(json.loads(as_json(report_content(target, results, failed))))


def say_failures(failed: Mapping[str, str]) -> None:
    """Tell which analyses could not be pooled, and why; the command then ends with the exit code of an analysis."""
    for title, reason in failed.items():
        notices.print(f"{title} could not be pooled. {reason}", markup=False, style="red")
    if failed:
        raise typer.Exit(AnalysisError.exit_code)
