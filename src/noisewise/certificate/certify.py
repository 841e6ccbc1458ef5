"""`certify`: will the intervals from a release cover? Found out by rehearsing it, without the confidential data."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from noisewise.analysis.estimates import Estimator
from noisewise.analysis.support import Relation, Standing, check_support
from noisewise.certificate.judge import judge
from noisewise.certificate.notebook import Notebook
from noisewise.certificate.populations import LOG_ODDS, Stress
from noisewise.certificate.repeat import Plan, repeat
from noisewise.certificate.result import Certificate
from noisewise.certificate.workers import in_processes
from noisewise.errors import AnalysisError, FitError, ModelError
from noisewise.posterior.fit import Method
from noisewise.posterior.result import Posterior
from noisewise.progress import Progress, silent

STRESS_SHARE, LEAST_STRESSED = 4, 10
"""One stressed rehearsal for so many others, but at least so many."""


def certify(
    posterior: Posterior,
    analyses: Mapping[str, Estimator],
    *,
    repeats: int = 100,
    datasets: int = 100,
    rows: int | None = None,
    seed: int = 0,
    method: Method | None = None,
    allow_untrusted: bool = False,
    workers: int = 1,
    notebook: Path | None = None,
    progress: Progress = silent,
) -> Certificate:
    """Rehearse the release `repeats` times on invented tables and count how often the intervals hold the truth.

    Each rehearsal takes a draw of the posterior for the population, draws a table of n rows from it, counts with
    fresh noise of the same size, fits, synthesizes, analyses and pools; the truth of the population is known. Where an
    analysis rests on columns that were not measured together, some more rehearsals have populations with the same
    measured marginals and an association there. Nothing confidential is touched and no budget is spent.

    `analyses` are estimators by title. `notebook` is a file that keeps what is done, so that a run that was killed
    goes on where it was. With more than one of `workers`, processes share the work.

        certify(release.posterior(), {"income": glm("income ~ age + race", family="binomial")})
    """
    _refuse(posterior, analyses, repeats, allow_untrusted)
    gaps = {title: _gaps(estimator, posterior) for title, estimator in analyses.items()}
    stress, note = _stress(posterior, [gap for found in gaps.values() for gap in found])
    plan = Plan(
        posterior=posterior,
        analyses=dict(analyses),
        datasets=datasets,
        rows=rows or posterior.noisy_counts.rows,
        seed=seed,
        method=method,
        stress=stress,
    )
    stressed = max(LEAST_STRESSED, repeats // STRESS_SHARE) if stress is not None else 0
    tasks = [(number, False) for number in range(repeats)] + [(number, True) for number in range(stressed)]
    records = _records(plan, tasks, workers, notebook, progress)
    return Certificate(
        noisy_counts_hash=posterior.noisy_counts.hash,
        posterior_hash=posterior.hash,
        repeats=repeats,
        stressed=stressed,
        untrusted=sum(not record["trusted"] for record in records),
        datasets=datasets,
        rows=plan.rows,
        method=repr(method) if method is not None else "the default method",
        seed=seed,
        software=version("noisewise"),
        analyses=tuple(
            judge(title, records, [gap.sentence for gap in gaps[title]], note if gaps[title] else "")
            for title in analyses
        ),
    )


def _refuse(posterior: Posterior, analyses: Mapping[str, Estimator], repeats: int, allow_untrusted: bool) -> None:
    if not analyses:
        raise AnalysisError("There is no analysis to certify. Give at least one.")
    if repeats < 2:
        raise AnalysisError(f"repeats is {repeats}. Give 2 or more; 100 tell a coverage of 95 % from one of 85 %.")
    if not posterior.verdict.trusted and not allow_untrusted:
        raise FitError(
            "The release's posterior failed its checks, and populations would be drawn from it. Fit again with another "
            "method, or insist with --allow-untrusted."
        )


def _gaps(estimator: Estimator, posterior: Posterior) -> tuple[Relation, ...]:
    """What an analysis rests on that was not measured."""
    if not estimator.rests_on:
        return ()
    return check_support(estimator.rests_on, posterior.noisy_counts.marginals).gaps


def _stress(posterior: Posterior, gaps: Sequence[Relation]) -> tuple[Stress | None, str]:
    """The associations to try, and a sentence on them."""
    schema = posterior.noisy_counts.schema
    wanted = [gap for gap in gaps if gap.standing is not Standing.ABSENT]
    columns = list(dict.fromkeys(tuple(sorted(schema.index(name) for name in gap.columns)) for gap in wanted))
    columns = [c for c in columns if not any(set(other) < set(c) for other in columns)]
    if not columns:
        return None, "Nothing is known of the unmeasured columns, so no such association was tried." if gaps else ""
    stress = Stress(model=posterior.model, gaps=tuple(columns))
    try:
        cells = stress.tree.cells
    except ModelError as error:
        return None, f"Populations with unmeasured associations were not tried. {error}"
    names = ", ".join(" × ".join(schema.names[c] for c in pair) for pair in columns)
    assert cells > 0
    return stress, (
        f"The populations of the second kind have the same measured marginals and an association of {names}: an odds "
        f"ratio of {np.exp(LOG_ODDS):.1f} between the ends of the columns. The release could not tell them apart."
    )


def _records(
    plan: Plan, tasks: list[tuple[int, bool]], workers: int, path: Path | None, progress: Progress
) -> list[dict[str, Any]]:
    """The records of all repeats: those that are kept already, and the others as they are computed."""
    notebook = Notebook(path=path, key=_key(plan)) if path is not None else None
    wanted = set(tasks)
    kept = {(r["number"], r["stressed"]): r for r in (notebook.read() if notebook else [])}
    records = {task: record for task, record in kept.items() if task in wanted}
    missing = [task for task in tasks if task not in records]
    if notebook is not None:
        notebook.begin(list(kept.values()))
    workers = max(1, min(workers, len(missing)))
    computed = in_processes(plan, missing, workers, progress) if workers > 1 else _here(plan, missing, progress)
    for record in computed:
        records[record["number"], record["stressed"]] = record
        if notebook is not None:
            notebook.add(record)
    if notebook is not None:
        notebook.close()
    return [records[task] for task in tasks]


def _here(plan: Plan, tasks: Sequence[tuple[int, bool]], progress: Progress) -> Any:
    for done, (number, stressed) in enumerate(tasks):
        progress("rehearsing", done, len(tasks))
        yield repeat(plan, number, stressed)


def _key(plan: Plan) -> str:
    """What a record depends on: records of anything else are not to be mixed with these."""
    method = None if plan.method is None else [type(plan.method).__name__, dataclasses.asdict(plan.method)]
    content = [
        plan.posterior.noisy_counts.hash,
        plan.posterior.hash,
        {title: repr(estimator) for title, estimator in plan.analyses.items()},
        plan.datasets,
        plan.rows,
        plan.seed,
        method,
        plan.stress.gaps if plan.stress else (),
        version("noisewise"),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
