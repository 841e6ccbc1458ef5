"""The plan of a study: what its file asks for, without the table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from noisewise.artifacts import read_release
from noisewise.errors import StudyError
from noisewise.planning import Plan, Rehearsal, plan
from noisewise.privacy.budget import Budget
from noisewise.progress import Progress, silent
from noisewise.rehearsal import FromPosterior, FromSample, Population, Uniform
from noisewise.schema import Schema
from noisewise.study.analyses import estimator_of, refuse_unworkable
from noisewise.study.file import Study
from noisewise.study.sample import public_sample

UNIFORM = "uniform"


def plan_study(
    study: Study,
    *,
    rows: int | None = None,
    like: str | None = None,
    epsilons: Sequence[float] = (),
    datasets: int | None = None,
    rehearsals: int = 1,
    progress: Progress = silent,
) -> Plan:
    """Plan what a study asks for. The confidential table is not opened: `rows`, or [data] rows, says how long it is.

    With `like`, the release is rehearsed on invented tables, to tell what intervals to expect: "uniform", a public
    table with the schema's columns, or the folder of an earlier release with the same schema.
    """
    count = study.data.rows if rows is None else rows
    if count is None:
        raise StudyError(
            "Planning needs the public number of rows, and opens no table to count them. "
            "Give --rows, or rows in [data]."
        )
    schema, population = study.load_schema(), None
    intended = [analysis.written for analysis in study.analysis]
    refuse_unworkable(schema, intended)
    if like is not None:
        schema, population = population_like(like, schema)
    privacy = study.privacy
    return plan(
        schema,
        count,
        study.load_workload(schema),
        Budget(epsilon=privacy.epsilon, delta=privacy.delta),
        analyses={analysis["formula"]: estimator_of(analysis) for analysis in intended},
        epsilons=epsilons,
        select=study.selection(),
        unit=privacy.unit,
        max_rows_per_unit=privacy.max_rows_per_unit,
        rehearsal=None if population is None else _rehearsal(study, population, datasets, rehearsals),
        progress=progress,
    )


def _rehearsal(study: Study, population: Population, datasets: int | None, rehearsals: int) -> Rehearsal:
    return Rehearsal(
        population=population,
        datasets=study.synthesis.datasets if datasets is None else datasets,
        rehearsals=rehearsals,
        method=study.posterior.chosen_method,
    )


def population_like(like: str, schema: Schema) -> tuple[Schema, Population]:
    """Where invented rows come from, and the schema they are of: with edges, where those are yet to be bought.

    `like` is "uniform", a public table, or an earlier release with the same schema.
    """
    if like == UNIFORM:
        even = {column.name: column.edges_from(np.zeros(len(column.points) - 1)) for column in schema.to_be_bought}
        settled = schema.with_edges(even)
        return settled, Uniform(schema=settled)
    path = Path(like)
    if path.is_dir() or path.suffix == ".zip":
        posterior = read_release(path).posterior()
        there = posterior.noisy_counts.schema
        if not schema.became(there):
            raise StudyError(f"{like} is a release of another schema. Give one with this study's schema, or a table.")
        return there, FromPosterior(posterior=posterior, number=0)
    codes, settled = public_sample(like, schema)
    return settled, FromSample(codes=codes)
