"""The analyses a study names: from words in a file to estimators, tried on invented rows before anything is spent."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from noisewise.analysis.choice_models import CHOICE_MODELS
from noisewise.analysis.estimates import Estimator
from noisewise.analysis.families import NAMES as FAMILIES
from noisewise.analysis.glm import glm
from noisewise.analysis.remedies import REMEDIES
from noisewise.errors import AnalysisError, StudyError, did_you_mean
from noisewise.rehearsal import Uniform
from noisewise.schema import Schema

INVENTED_ROWS = 2_000
"""Rows of the table that analyses are tried on: every level of an ordinary column occurs among them."""


def estimator_of(analysis: Mapping[str, str]) -> Estimator:
    """The estimator of an analysis, a mapping with `model`, `formula` and perhaps `remedy`."""
    model, formula, remedy = analysis["model"], analysis["formula"], analysis.get("remedy", "")
    if remedy and (remedy not in REMEDIES or model in CHOICE_MODELS):
        raise AnalysisError(f"The remedy {remedy!r} is not one for {model!r}. {did_you_mean(remedy, REMEDIES)}")
    if model in CHOICE_MODELS:
        return CHOICE_MODELS[model](formula)
    if model.lower() not in FAMILIES:
        raise AnalysisError(f"The model {model!r} is not known. {did_you_mean(model, [*FAMILIES, *CHOICE_MODELS])}")
    return glm(formula, family=model, remedy=REMEDIES[remedy]() if remedy else None)


def refuse_unworkable(schema: Schema, analyses: Sequence[Mapping[str, str]]) -> None:
    """Refuse an analysis that fails even on invented rows: better now than after the budget is spent.

    The rows are uniform over the schema's levels, so what fails here is the formula, the model's name or an
    outcome that the model cannot have, and not something about the confidential table.
    """
    invented = None
    for analysis in analyses:
        try:
            estimator = estimator_of(analysis)
            if invented is None:
                invented = _invented(schema)
            estimator.fit([invented])
        except AnalysisError as error:
            raise StudyError(f"The analysis {analysis['formula']!r}: {error} Nothing was measured.") from None


def _invented(schema: Schema) -> pa.Table:
    """Uniform rows; columns whose edges are yet to be bought get even ones."""
    edges = {column.name: column.edges_from(np.zeros(len(column.points) - 1)) for column in schema.to_be_bought}
    settled = schema.with_edges(edges)
    stream = np.random.default_rng(0)
    return settled.decode(Uniform(schema=settled).draw(INVENTED_ROWS, stream), stream)
