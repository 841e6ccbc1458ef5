"""`noisewise plan`: what a release would be like, before anything is spent."""

from pathlib import Path
from typing import Annotated

import typer

from noisewise.cli.app import Debug, StudyFile, command, say, shown_progress
from noisewise.errors import StudyError


@command("plan")
def plan_command(
    study: StudyFile,
    rows: Annotated[int | None, typer.Option(help="The public number of rows; by default [data] rows.")] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Rehearse to tell what intervals to expect: uniform, a public table, or an earlier release."),
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget to compare with; may be given several times.")
    ] = None,
    datasets: Annotated[int | None, typer.Option(help="Datasets in a rehearsal; by default the study's.")] = None,
    rehearsals: Annotated[int, typer.Option(min=1, help="How many tables to invent.")] = 1,
    certify: Annotated[
        bool, typer.Option("--certify", help="Show the curve: how long intervals are under each budget. Needs --like.")
    ] = False,
    length: Annotated[
        float | None, typer.Option(min=0, help="With --certify: say which epsilon 95 % intervals this long need.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the plan as a page for people.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the plan for programs.")] = None,
    debug: Debug = False,
) -> None:
    """Say what a release would be like: noise, model size, supported analyses, intervals to expect, warnings.

    No confidential table is opened and nothing is spent. A workload whose model would not fit in memory is refused.
    """
    from noisewise.planning.curve import curve_text
    from noisewise.study import Study, plan_study

    if certify and like is None:
        raise StudyError(
            "--certify rehearses on invented tables: say what they are like, with --like uniform, a public table or an "
            "earlier release."
        )

    with shown_progress() as progress:
        planned = plan_study(
            Study.load(study),
            rows=rows,
            like=like,
            epsilons=epsilon or (),
            datasets=datasets,
            rehearsals=rehearsals,
            progress=progress,
        )
    say(str(planned))
    if certify:
        say("\n" + curve_text(planned, length))
    for path, text in ((html, planned.to_html), (json, planned.to_json)):
        if path is not None:
            path.write_text(text(), "utf-8")
            say(f"\nWritten: {path}")
