"""The stages of a study, one after the other: each takes what the file says and the values of the stage before."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from noisewise.analysis.analyze import analyze
from noisewise.analysis.parallel import processors
from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Release
from noisewise.artifacts.timing import Timing, write_timing
from noisewise.errors import AnalysisError, ReleaseError, StudyError
from noisewise.noisy_counts import NoisyCounts
from noisewise.planning.sizes import refuse_large_model
from noisewise.posterior.fit import fit
from noisewise.posterior.problem import NormalPrior
from noisewise.posterior.result import Posterior
from noisewise.privacy.ledger import Ledger
from noisewise.progress import Progress, silent
from noisewise.reporting.report import report
from noisewise.study.analyses import estimator_of, refuse_unworkable
from noisewise.study.file import Study
from noisewise.study.sections import PosteriorSection, SynthesisSection
from noisewise.synthesis import DrawnDatasets, synthesize


def fit_counts(noisy_counts: NoisyCounts, section: PosteriorSection, progress: Progress = silent) -> Posterior:
    """Fit as a study's [posterior] section says."""
    prior = NormalPrior(stddev=section.prior_stddev)
    return fit(
        noisy_counts,
        section.chosen_method,
        prior=prior,
        cells=section.cells,
        seed=section.seed,
        progress=progress,
    )


def fit_release(release: Release, section: PosteriorSection, progress: Progress = silent) -> Posterior:
    """Fit a release's noisy counts, add the posterior to it, and keep the time it took beside it."""
    began = time.perf_counter()
    posterior = fit_counts(release.noisy_counts(), section, progress)
    seconds = round(time.perf_counter() - began, 1)
    release.write_posterior(posterior)
    timing = Timing(posterior_hash=posterior.hash, fit_seconds=seconds, processors=processors())
    write_timing(release.folder, timing)
    return posterior


def draw(posterior: Posterior, section: SynthesisSection, allow_untrusted: bool = False) -> DrawnDatasets:
    """Draw as a study's [synthesis] section says."""
    return synthesize(posterior, section.datasets, section.rows, seed=section.seed, allow_untrusted=allow_untrusted)


def analyze_release(
    release: Release, analyses: Sequence[Mapping[str, str]], *, strict: bool = False, progress: Progress = silent
) -> dict[str, Pooled]:
    """Run analyses, each a mapping with `formula` and `model`, on a release's datasets; results by formula."""
    results = {}
    datasets = release.datasets() if analyses else ()
    for number, analysis in enumerate(analyses):
        progress(f"analysing {analysis['formula']}", number, len(analyses))
        results[analysis["formula"]] = analyze(datasets, estimator_of(analysis), strict=strict)
    return results


def analyze_each(
    release: Release, analyses: Sequence[Mapping[str, str]], progress: Progress = silent
) -> tuple[dict[str, Pooled], dict[str, str]]:
    """Run every analysis by itself: the results by formula, and why the others could not be pooled."""
    results: dict[str, Pooled] = {}
    failed: dict[str, str] = {}
    for number, analysis in enumerate(analyses):
        progress(f"analysing {analysis['formula']}", number, len(analyses))
        try:
            results |= analyze_release(release, [analysis])
        except AnalysisError as error:
            failed[analysis["formula"]] = str(error)
    return results, failed


def write_report(release: Release, progress: Progress = silent) -> "Outcome":
    """Run the analyses a release intends, as far as it has datasets, and write its report."""
    manifest = release.manifest()
    results, failed = analyze_each(release, manifest.analyses if manifest.synthesis else (), progress)
    return Outcome(results=results, failed=failed, report=report(release, results, failed))


def measured(study: Study, ledger: Ledger | None, progress: Progress = silent) -> NoisyCounts:
    """Open the confidential table and measure what a study asks for, here and now."""
    from noisewise.privacy.budget import Budget
    from noisewise.privacy.measure import measure

    schema, privacy = study.load_schema(), study.privacy
    if ledger is not None and privacy.cap is not None:
        cap = Budget(privacy.cap.epsilon, privacy.cap.delta)
        ledger.agree(cap, unit=privacy.unit, max_rows_per_unit=privacy.max_rows_per_unit)
    return measure(
        study.source(),
        schema,
        study.load_workload(schema),
        Budget(epsilon=privacy.epsilon, delta=privacy.delta),
        ledger,
        select=study.selection(),
        unit=privacy.unit,
        max_rows_per_unit=privacy.max_rows_per_unit,
        progress=progress,
    )


def measure_study(
    study: Study,
    release: Release,
    progress: Progress = silent,
    *,
    ledger: Ledger | None = None,
    measuring: Callable[[Study, Ledger | None], NoisyCounts] = measured,
) -> NoisyCounts:
    """Measure what a study asks for and start its release; a release that is there is never measured again.

    `ledger` is where the cost is debited (the study's own by default), and `measuring` who opens the table.
    """
    if release.exists():
        raise ReleaseError(
            f"{release.folder} already holds a release. Measuring again would spend the budget again: go on with "
            "`noisewise fit`, or give another folder."
        )
    schema = study.load_schema()
    workload = study.load_workload(schema)
    refuse_large_model(schema, workload.marginals)
    select = study.selection()
    if select is not None:
        select.choices(schema, workload.marginals)  # what cannot be kept is told here
    intended = tuple(analysis.written for analysis in study.analysis)
    refuse_unworkable(schema, intended)
    progress("counting and adding noise", 0, 0)
    noisy_counts = measuring(study, ledger or study.ledger())
    release.write_noisy_counts(noisy_counts, intended)
    return noisy_counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a whole run leaves in memory; the rest is in the release's folder."""

    results: Mapping[str, Pooled]
    """The pooled analyses by formula."""
    failed: Mapping[str, str]
    """Why the other analyses could not be pooled, by formula."""
    report: Path
    """Where the report is."""
    posterior: Posterior | None = None
    """The posterior, where it was fitted on the way."""


def run_study(
    study: Study,
    release: Release,
    *,
    allow_untrusted: bool = False,
    progress: Progress = silent,
    ledger: Ledger | None = None,
    measuring: Callable[[Study, Ledger | None], NoisyCounts] = measured,
) -> Outcome:
    """Go through all stages; noisy counts that are there are taken, never measured again."""
    if release.exists():
        release.refuse_if_signed()
        _refuse_other_study(study, release.noisy_counts())
    else:
        measure_study(study, release, progress, ledger=ledger, measuring=measuring)
    posterior = fit_release(release, study.posterior, progress)
    release.write_datasets(draw(posterior, study.synthesis, allow_untrusted), progress)
    return replace(write_report(release, progress), posterior=posterior)


def _refuse_other_study(study: Study, noisy_counts: NoisyCounts) -> None:
    """Going on with another study's noisy counts would answer other questions than the file asks."""
    schema = study.load_schema()
    wanted, there = study.load_workload(schema).marginals, noisy_counts.marginals
    same = wanted == there if study.selection() is None else set(wanted) <= set(there)
    if not schema.became(noisy_counts.schema) or not same:
        raise StudyError(
            "The release that is there was measured with another schema or other marginals than this study asks for. "
            "Give another folder with --release, or correct the study."
        )
