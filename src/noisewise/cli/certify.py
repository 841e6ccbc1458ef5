"""`noisewise certify`: whether the intervals from a release will cover."""

from typing import Annotated

import typer

from noisewise.cli.app import AllowUntrusted, Debug, ReleaseFolder, command, say, screen, shown_progress, to_change
from noisewise.errors import AnalysisError


@command("certify")
def certify_command(
    release: ReleaseFolder,
    analyses: Annotated[
        list[str] | None,
        typer.Option("--analyses", help="A formula, such as 'y ~ a + b'; may be repeated; by default the study's."),
    ] = None,
    model: Annotated[str, typer.Option(help="gaussian, binomial, poisson, … for --analyses.")] = "gaussian",
    repeats: Annotated[int, typer.Option(min=2, help="Rehearsals.")] = 100,
    method: Annotated[str, typer.Option(help="How the rehearsals are fitted: as in `noisewise fit`.")] = "auto",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one per processor.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the rehearsals.")] = 0,
    allow_untrusted: AllowUntrusted = False,
    debug: Debug = False,
) -> None:
    """Rehearse a release on invented tables, and count how often its intervals hold the truth.

    Populations are drawn from the posterior, tables from the populations; the confidential data are not touched and no
    budget is spent. What is done is kept beside the release: a run that was stopped goes on where it was. The
    certificate is attached to the release, and the report written anew: sign a release afterwards, not before.
    """
    from noisewise.certificate.certify import certify
    from noisewise.certificate.workers import default_workers
    from noisewise.reporting.terminal import certificate_parts
    from noisewise.study import PosteriorSection, settings, write_report
    from noisewise.study.analyses import estimator_of

    target = to_change(release)
    manifest = target.manifest()
    wanted = [{"model": model, "formula": formula} for formula in analyses or ()] or list(manifest.analyses)
    if not wanted:
        raise AnalysisError("The release names no analyses. Give one: --analyses 'y ~ a + b' --model binomial")
    drawn = manifest.synthesis
    with shown_progress() as progress:
        certificate = certify(
            target.posterior(),
            {analysis["formula"]: estimator_of(analysis) for analysis in wanted},
            repeats=repeats,
            datasets=drawn.datasets if drawn else 100,
            rows=drawn.rows if drawn else None,
            seed=seed,
            method=settings(PosteriorSection, method=method).chosen_method,
            allow_untrusted=allow_untrusted,
            workers=workers or default_workers(),
            notebook=release.resolve().with_name(f"{release.resolve().name}.certifying.jsonl"),
            progress=progress,
        )
    path = target.write_certificate(certificate)
    for part in certificate_parts(certificate.model_dump(mode="json")):
        screen.print(part)
    with shown_progress() as progress:
        outcome = write_report(target, progress)
    say(f"Certificate: {path}\nReport: {outcome.report}")
