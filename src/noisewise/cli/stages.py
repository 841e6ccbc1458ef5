"""The stages of a study as commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noisewise.artifacts import Release, read_release
from noisewise.cli.accounts import spent_by
from noisewise.cli.app import (
    AllowUntrusted,
    Debug,
    ReleaseFolder,
    StudyFile,
    command,
    say,
    shown_progress,
    to_change,
)
from noisewise.cli.reports import say_failures
from noisewise.errors import AnalysisError
from noisewise.posterior.result import Posterior

if TYPE_CHECKING:
    from noisewise.privacy.ledger import Ledger
    from noisewise.study import Study

Destination = Annotated[
    Path | None,
    typer.Option("--release", "-o", help="Folder of the release; by default STUDY's name + '-release', beside it."),
]


Source = Annotated[str | None, typer.Option("--source", help="The confidential table, in place of [data] source.")]


LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="The ledger to debit; by default [privacy] ledger, or noisewise.ledger by STUDY."),
]

Select = Annotated[
    str | None,
    typer.Option("--select", help="Choose further marginals privately: mst or adaptive, as [workload] select."),
]
SelectShare = Annotated[float, typer.Option("--select-share", help="The share of the budget that --select gets.")]


@command("measure")
def measure_command(
    study: StudyFile,
    release: Destination = None,
    source: Source = None,
    ledger: LedgerFile = None,
    select: Select = None,
    select_share: SelectShare = 0.1,
) -> None:
    """Measure the study's marginals with privacy noise, and start its release.

    This is the only private act: a process of its own opens the confidential table, debits the ledger and draws
    the noise. What is written may be published. The same question asked again is answered from the ledger, and
    costs nothing. Errors name a column and a code, never a value of the table; there is no --debug here.
    """
    from noisewise.cli.own_process import OwnProcess
    from noisewise.study import Study, measure_study

    folder, wanted = _destination(study, release), _choosing(Study.load(study).reading(source), select, select_share)
    account = _account(study, wanted, ledger)
    with shown_progress() as progress:
        measure_study(wanted, Release(folder), progress, ledger=account, measuring=OwnProcess(progress))
    say(f"Measured into {folder}.\n{spent_by(account)}\nNext: noisewise fit {folder}")


@command("fit")
def fit_command(
    release: ReleaseFolder,
    method: Annotated[str, typer.Option(help="auto, hmc, nuts or laplace.")] = "auto",
    prior_stddev: Annotated[float, typer.Option(help="Standard deviation of the normal prior.")] = 10.0,
    cells: Annotated[str, typer.Option(help="all, or canonical as in the published experiments.")] = "all",
    seed: Annotated[int, typer.Option(help="Seed of the fit.")] = 0,
    debug: Debug = False,
) -> None:
    """Fit the Bayesian model to a release's noisy counts. Costs no privacy, however often it is run."""
    from noisewise.study import PosteriorSection, fit_release, settings

    given = settings(PosteriorSection, method=method, prior_stddev=prior_stddev, cells=cells, seed=seed)
    target = to_change(release)
    with shown_progress() as progress:
        posterior = fit_release(target, given, progress)
    _say_verdict(posterior)
    say(f"Next: noisewise synthesize {release}")


@command("synthesize")
def synthesize_command(
    release: ReleaseFolder,
    datasets: Annotated[int, typer.Option(help="Number of datasets m.")] = 100,
    rows: Annotated[int | None, typer.Option(help="Rows of each; by default as many as were measured.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the series.")] = 0,
    allow_untrusted: AllowUntrusted = False,
    debug: Debug = False,
) -> None:
    """Draw synthetic datasets from a release's posterior, each from a posterior draw of its own."""
    from noisewise.study import SynthesisSection, draw, settings

    given = settings(SynthesisSection, datasets=datasets, rows=rows, seed=seed)
    target = to_change(release)
    drawn = draw(target.posterior(), given, allow_untrusted)
    with shown_progress() as progress:
        target.write_datasets(drawn, progress)
    say(f"Drew {datasets} datasets of {drawn.rows:,} rows into {release / 'synthetic'}.")
    say(f"Next: noisewise analyze {release}")


@command("analyze")
def analyze_command(
    release: ReleaseFolder,
    formula: Annotated[str | None, typer.Option(help="Such as 'income ~ age + race'; by default the study's.")] = None,
    model: Annotated[
        str, typer.Option(help="For --formula: gaussian, binomial, poisson, …, ordered-logit, multinomial-logit.")
    ] = "gaussian",
    strict: Annotated[bool, typer.Option("--strict", help="Refuse what the release does not support.")] = False,
    debug: Debug = False,
) -> None:
    """Run an analysis on each synthetic dataset and pool the results with Rubin's rules for synthetic data."""
    from noisewise.study import analyze_release

    target = read_release(release)
    analyses = target.manifest().analyses if formula is None else ({"formula": formula, "model": model},)
    if not analyses:
        raise AnalysisError("The release names no analyses. Give one: --formula 'y ~ a + b' --model binomial")
    with shown_progress() as progress:
        results = analyze_release(target, analyses, strict=strict, progress=progress)
    for pooled in results.values():
        say(pooled.summary().as_text() + "\n")


@command("run")
def run_command(
    study: StudyFile,
    release: Destination = None,
    source: Source = None,
    ledger: LedgerFile = None,
    select: Select = None,
    select_share: SelectShare = 0.1,
    allow_untrusted: AllowUntrusted = False,
) -> None:
    """Run a whole study: measure, fit, synthesize, analyze, report.

    A release that is already there is never measured again: the run goes on from its noisy counts.
    """
    from noisewise.cli.own_process import OwnProcess
    from noisewise.study import Study, run_study

    folder, wanted = _destination(study, release), _choosing(Study.load(study).reading(source), select, select_share)
    account = _account(study, wanted, ledger)
    with shown_progress() as progress:
        outcome = run_study(
            wanted,
            Release(folder),
            allow_untrusted=allow_untrusted,
            progress=progress,
            ledger=account,
            measuring=OwnProcess(progress),
        )
    assert outcome.posterior is not None  # it was fitted on the way
    _say_verdict(outcome.posterior)
    for pooled in outcome.results.values():
        say(pooled.summary().as_text() + "\n")
    say(f"Release: {folder}\nReport:  {outcome.report}")
    say_failures(outcome.failed)


def _destination(study: Path, release: Path | None) -> Path:
    return release if release is not None else study.with_name(study.name.removesuffix(".toml") + "-release")


def _choosing(wanted: "Study", select: str | None, share: float) -> "Study":
    """The study with another selection, where an option names one."""
    if select is None:
        return wanted
    from noisewise.study import selecting

    return selecting(wanted, select, share)


def _account(study: Path, wanted: "Study", ledger: Path | None) -> "Ledger":
    """The account to debit: the option, what the study says, or a ledger beside the study."""
    if ledger is not None:
        wanted = wanted.model_copy(
            update={"privacy": wanted.privacy.model_copy(update={"ledger": str(ledger.resolve())})}
        )
    account = wanted.ledger(study.resolve().with_name("noisewise.ledger"))
    assert account is not None  # a default was given
    return account


def _say_verdict(posterior: Posterior) -> None:
    verdict = posterior.verdict
    say(f"Posterior ({posterior.record.method}): {verdict.summary}")
    for reason in verdict.reasons:
        say(f"  {reason}")
