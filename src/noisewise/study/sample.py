"""A public table as level codes: what plans and rehearsals draw invented rows from. Never a confidential one."""

from pathlib import Path

import numpy as np
from jaxtyping import Integer

from noisewise.confidential.codes import rows_of_codes
from noisewise.confidential.readings import FORBIDDEN
from noisewise.confidential.sources import opened
from noisewise.errors import StudyError
from noisewise.schema import Schema

SHOWN = 3


def public_sample(path: str | Path, schema: Schema) -> tuple[Integer[np.ndarray, "rows columns"], Schema]:
    """The rows of a public table as level codes, with the schema they are of.

    Rows that the schema has no place for are left out, as nobody is protected here; a column that half of the rows
    have no place in is an error. Where edges are yet to be bought, the sample's own quantiles are taken.
    """
    fine = schema.on_grids
    with opened(path) as source:
        levels = rows_of_codes(source, fine.columns)
    _refuse_misfits(levels, schema, str(path))
    inside = (levels >= 0).all(1)
    for box in schema.impossible:
        inside &= ~np.all([np.isin(levels[:, column], own) for column, own in box], axis=0)
    if not inside.any():
        raise StudyError(f"No row of {path} fits the schema and its rules. Check that it is the same kind of table.")
    return _settled(levels[inside], schema)


def _refuse_misfits(levels: np.ndarray, schema: Schema, path: str) -> None:
    shares = (levels < 0).mean(0)
    bad = [(name, share) for name, share in zip(schema.names, shares, strict=True) if share > 0.5]
    if bad:
        listed = ", ".join(f"{name!r} ({share:.0%})" for name, share in bad[:SHOWN])
        missing = " Most are missing values." if (levels == FORBIDDEN).sum() * 2 > (levels < 0).sum() else ""
        raise StudyError(f"Most rows of {path} have values that the schema does not know: {listed}.{missing}")


def _settled(levels: np.ndarray, schema: Schema) -> tuple[np.ndarray, Schema]:
    """Fold the cells of grids to bins with edges that hold about equally many rows of the sample."""
    levels, edges = levels.copy(), {}
    for column in schema.to_be_bought:
        position, cells = schema.index(column.name), len(column.points) - 1
        edges[column.name] = column.edges_from(np.bincount(levels[:, position], minlength=cells)[:cells])
        levels[:, position] = column.levels_from_grid(edges[column.name])[levels[:, position]]
    return levels, schema.with_edges(edges)
