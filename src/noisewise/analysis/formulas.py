"""Formulas: which columns a model uses, its design matrix on distinct rows, and its outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from noisewise.analysis.estimates import spread_summary
from noisewise.analysis.rows import WeightedRows, expand, weighted_rows
from noisewise.errors import AnalysisError, did_you_mean
from noisewise.formula import columns_of, looks_at_whole_columns, read_formula

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class Parsed:
    """A formula taken apart."""

    text: str
    """The formula as written."""
    left: Any
    """The outcome's side, as formulaic has it; None where there is none."""
    right: Any
    """The other side."""
    outcome: tuple[str, ...]
    """Columns of the outcome."""
    columns: tuple[str, ...]
    """All columns, the outcome's first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """A design matrix over distinct rows, shared by the datasets that `counts` describes."""

    matrix: Float[ndarray, "distinct terms"]
    """Values of the terms in each distinct row."""
    outcome: Float[ndarray, " distinct"]
    """The outcome in each distinct row; codes of the levels where it is a category."""
    counts: Float[ndarray, "datasets distinct"]
    """How often each row occurs in each dataset."""
    weights: Float[ndarray, " distinct"]
    """Prior weight of each distinct row; 1 unless a column of weights was named."""
    terms: tuple[str, ...]
    """Column names of the matrix."""
    frame: "pd.DataFrame"
    """The distinct rows themselves."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A formula made ready on all datasets."""

    parsed: Parsed
    """The formula."""
    designs: list[Design]
    """One design that all datasets share, or one for each."""
    variables: dict[str, tuple[str, ...]]
    """The data columns that each term speaks of."""
    notes: tuple[str, ...]
    """What was done to the rows on the way."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Column names of the matrices."""
        return self.designs[0].terms

    @property
    def slopes(self) -> list[int]:
        """Positions of the terms other than the intercept."""
        return [i for i, term in enumerate(self.terms) if term != "Intercept"]


def prepare(
    formula: str,
    datasets: Sequence[Any],
    *,
    weights: str | None = None,
    besides: str | None = None,
    by_row: bool = False,
) -> Prepared:
    """Read a formula, reduce the datasets to distinct rows (or, with `by_row`, to all of them), and make the designs.

    `weights` names a column of prior weights, `besides` one that belongs to the outcome, such as the event of a time.
    """
    parsed, extra = parse(formula), weights or besides
    columns = parsed.columns if extra is None else tuple(dict.fromkeys((*parsed.columns, extra)))
    rows = weighted_rows(datasets, columns)
    rows = [one for part in rows for one in expand(part)] if by_row else rows
    made, spec, written_out = designs(parsed, rows, weights)
    notes = [f"Rows weighted by {weights!r} (prior weights)."] if weights else []
    if written_out:
        notes.append("A term depends on the whole column (scale, center, …); it was computed within each dataset.")
    return Prepared(
        parsed=parsed,
        designs=made,
        variables=variables_of_terms(parsed, made[0].terms, spec, extra),
        notes=(*notes, *missing_note(rows)),
    )


def parse(formula: str) -> Parsed:
    """Take a formula apart; an unreadable one is an `AnalysisError`."""
    left, right = read_formula(formula, AnalysisError)
    outcome = columns_of(left or ())
    others = [name for name in columns_of(right) if name not in outcome]
    if not outcome and not others:
        raise AnalysisError(f"The formula {formula!r} names no column. Write it as 'y ~ a + b'.")
    return Parsed(text=formula, left=left, right=right, outcome=outcome, columns=(*outcome, *others))


def with_outcome(column: str | None, formula: str) -> str:
    """The formula with one column more on the outcome's side: weights, or the event of a time."""
    return formula if column is None else f"`{column}` + {formula}"


def variables_of_terms(
    parsed: Parsed, terms: tuple[str, ...], spec: Any, besides: str | None = None
) -> dict[str, tuple[str, ...]]:
    """For each column of the matrix, the data columns it speaks of: its own, the outcome's, and one `besides`."""
    variables = {}
    always = tuple(dict.fromkeys((*parsed.outcome, *(() if besides is None else (besides,)))))
    for term, positions in spec.term_indices.items():
        own = [name for name in columns_of([term]) if name not in always]
        for position in positions:
            variables[terms[position]] = (*always, *own)
    return variables


def designs(parsed: Parsed, rows: list[WeightedRows], weights: str | None = None) -> tuple[list[Design], Any, bool]:
    """Design matrices, the specification of their columns, and whether rows had to be written out.

    `weights` names a column of prior weights.

    A formula such as `scale(x)` or `x - x.mean()` looks at all rows at once; it is evaluated on each dataset's full
    rows.
    """
    first, spec = _matrix(parsed.right, rows[0].frame, parsed)
    written_out = any(looks_at_whole_columns(side) for side in (parsed.left, parsed.right) if side is not None)
    if written_out:
        full = [one for part in rows for one in expand(part)]
        made = [_design(parsed, weights, part, *_matrix(parsed.right, part.frame, parsed)) for part in full]
    else:
        matrices = [(first, spec), *(_matrix(parsed.right, part.frame, parsed) for part in rows[1:])]
        made = [_design(parsed, weights, part, *matrix) for part, matrix in zip(rows, matrices, strict=True)]
    _same_terms(parsed, made)
    return made, spec, written_out


def _same_terms(parsed: Parsed, made: list[Design]) -> None:
    for number, design in enumerate(made):
        odd = sorted(set(design.terms) ^ set(made[0].terms))
        if odd:
            raise AnalysisError(
                f"The formula {parsed.text!r} gives the term {odd[0]!r} in some datasets only (compare datasets 0 and "
                f"{number}), because it takes levels or knots from each dataset. Make the column categorical with all "
                "its levels, or name the levels or knots in the formula."
            )


def _weights(frame: "pd.DataFrame", name: str) -> Float[ndarray, " distinct"]:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(frame[name]):
        raise AnalysisError(f"The weights {name!r} are not numbers. Name a numeric column.")
    weights = frame[name].to_numpy().astype(float)
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise AnalysisError(
            f"The weights {name!r} go from {weights.min():g} to {weights.max():g}. Weights must be finite and not "
            "negative, and some must be positive."
        )
    return weights


def _design(
    parsed: Parsed, weights: str | None, rows: WeightedRows, matrix: Float[ndarray, "distinct terms"], spec: Any
) -> Design:
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=0))
    terms = tuple(spec.column_names)
    if bad.size:
        raise AnalysisError(
            f"The term {terms[bad[0]]!r} is not a finite number in some rows. Change the transformation in "
            f"{parsed.text!r}, such as a logarithm of zero."
        )
    outcome = outcome_values(parsed, rows.frame)[0]
    if not np.isfinite(outcome).all():
        raise AnalysisError(
            f"The outcome {' + '.join(map(str, parsed.left))!r} is not a finite number in some rows. Change its "
            "transformation, such as a logarithm of zero."
        )
    return Design(
        matrix=matrix,
        outcome=outcome,
        counts=rows.counts,
        weights=np.ones(len(rows.frame)) if weights is None else _weights(rows.frame, weights),
        terms=terms,
        frame=rows.frame,
    )


def _matrix(side: Any, frame: "pd.DataFrame", parsed: Parsed) -> tuple[Float[ndarray, "distinct terms"], Any]:
    from formulaic import model_matrix
    from formulaic.errors import FormulaicError

    try:
        with np.errstate(all="ignore"):  # values that are not finite are told below, by the name of their term
            made = model_matrix(side, frame, context={"np": np}, na_action="ignore", ensure_full_rank=True)
    except FormulaicError as error:
        raise AnalysisError(f"Cannot evaluate the formula {parsed.text!r}: {error} {_hint(parsed, frame)}") from None
    return np.asarray(made, dtype=float), made.model_spec


def _hint(parsed: Parsed, frame: "pd.DataFrame") -> str:
    unknown = [name for name in parsed.columns if name not in frame.columns]
    return did_you_mean(unknown[0], frame.columns) if unknown else "Use column names, numbers and functions of np."


def outcome_values(parsed: Parsed, frame: "pd.DataFrame") -> tuple[Float[ndarray, " distinct"], tuple[str, ...]]:
    """The outcome as numbers, and its levels where it is a category (then the numbers are their codes)."""
    import pandas as pd

    if parsed.left is None or len(parsed.left) != 1:
        raise AnalysisError(f"The formula {parsed.text!r} needs one outcome. Write it as 'y ~ a + b'.")
    column = frame[parsed.outcome[0]] if parsed.outcome == tuple(map(str, parsed.left)) else None
    if column is not None and isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(float), tuple(str(level) for level in column.cat.categories)
    if column is not None:
        levels = ("False", "True") if column.dtype == bool else ()
        return column.to_numpy().astype(float), levels
    matrix, spec = _matrix(_without_intercept(parsed.left), frame, parsed)
    if matrix.shape[1] != 1:
        raise AnalysisError(
            f"The outcome of {parsed.text!r} has {matrix.shape[1]} columns: {', '.join(spec.column_names)}. "
            "Write one, such as I(y == 'level')."
        )
    return matrix[:, 0], ()


def _without_intercept(side: Any) -> Any:
    from formulaic import Formula

    return Formula([term for term in side if str(term) != "1"], _ordering="none")


def codes_of(frame: "pd.DataFrame", column: str) -> tuple[Int[ndarray, " distinct"], tuple[str, ...]]:
    """Codes and labels of a categorical or boolean column; other columns are refused."""
    import pandas as pd

    values = frame[column]
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.codes.to_numpy().astype(int), tuple(str(level) for level in values.cat.categories)
    if values.dtype == bool:
        return values.to_numpy().astype(int), ("False", "True")
    distinct, codes = np.unique(values.to_numpy(), return_inverse=True)
    return codes, tuple(f"{value:g}" for value in distinct)


def missing_note(rows: list[WeightedRows]) -> tuple[str, ...]:
    """How many rows were set aside for a missing value; nothing if none was."""
    missing = [count for part in rows for count in part.missing]
    if not any(missing):
        return ()
    return (f"Rows set aside because a variable is missing: {spread_summary(missing)} per dataset.",)
