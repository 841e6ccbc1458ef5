"""Hypotheses in words: names of terms, names of columns, or equations between terms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from noisewise.errors import AnalysisError, did_you_mean


def constraints_of(
    hypothesis: Any, values: Any, terms: tuple[str, ...]
) -> tuple[Float[ndarray, "constraints terms"], Float[ndarray, " constraints"]]:
    """A matrix and values such that the hypothesis is: matrix · estimands = values.

    Texts are names or equations; anything else is a matrix already. `values` are added to those of equations.
    """
    texts = [hypothesis] if isinstance(hypothesis, str) else list(hypothesis)
    if texts and all(isinstance(text, str) for text in texts):
        parts = [_in_words(text, terms) for text in texts]
        matrix, known = np.vstack([part for part, _ in parts]), np.concatenate([right for _, right in parts])
    else:
        matrix = np.atleast_2d(np.asarray(hypothesis, float))
        known = np.zeros(len(matrix))
    if matrix.shape[1] != len(terms):
        raise AnalysisError(
            f"The constraints have {matrix.shape[1]} columns for {len(terms)} terms. Give one column per term."
        )
    given = np.asarray(values, float)
    if given.shape not in ((), (1,), (len(matrix),)):
        raise AnalysisError(f"There are {given.size} values for {len(matrix)} constraints. Give one each, or one.")
    return matrix, known + given


def terms_of(name: str, terms: Sequence[str]) -> tuple[str, ...]:
    """The terms of one column: itself, or the levels it is coded in; empty if there are none."""
    if name in terms:
        return (name,)
    return tuple(term for term in terms if term.startswith(f"{name}[") and term.endswith("]") and ":" not in term)


def _in_words(text: str, terms: tuple[str, ...]) -> tuple[ndarray, ndarray]:
    named = terms_of(text, terms)
    if named:
        return np.eye(len(terms))[[terms.index(term) for term in named]], np.zeros(len(named))
    if "=" not in text:
        raise AnalysisError(f"The result has no term {text!r}. {did_you_mean(text, terms)}")
    return _equation(text, terms)


def _equation(text: str, terms: tuple[str, ...]) -> tuple[ndarray, ndarray]:
    from formulaic.errors import FormulaicError
    from formulaic.utils.constraints import LinearConstraints

    try:
        read = LinearConstraints.from_spec(text, variable_names=list(terms))
    except (FormulaicError, ValueError, RuntimeError, SyntaxError, KeyError):
        raise AnalysisError(
            f"Cannot read the hypothesis {text!r}. Write names of terms, or equations such as "
            f"'{terms[0]} = 0' or '`{terms[0]}` = `{terms[-1]}`'; the terms are {', '.join(terms)}."
        ) from None
    return np.asarray(read.constraint_matrix, float), np.asarray(read.constraint_values, float)
