"""Maximum likelihood for models beyond GLMs: one damped Newton method for whatever gives value, slope and curvature.

A model is evaluated on distinct rows with counts, so that its cost does not grow with the number of rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, counted
from noisewise.analysis.formulas import Design
from noisewise.analysis.information import invert, solve
from noisewise.analysis.parallel import each

MAX_STEPS = 40
CONVERGED = 1e-18
"""Squared Newton step, in units of the standard errors, at convergence."""
EMPTY = "a coefficient is not determined by the dataset (an empty level or a collinear column)"
DIVERGED = "the likelihood has no maximum (separation, or a level of the outcome without rows)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """A log-likelihood at one point."""

    value: float
    """The log-likelihood; minus infinity where the parameters are impossible."""
    slope: Float[ndarray, " parameters"]
    """Its gradient."""
    information: Float[ndarray, "parameters parameters"]
    """Minus its matrix of second derivatives."""


class Likelihood(ABC):
    """The log-likelihood of one dataset."""

    @abstractmethod
    def start(self) -> Float[ndarray, " parameters"]:
        """Parameters to start from."""

    @abstractmethod
    def at(self, parameters: Float[ndarray, " parameters"]) -> Curve:
        """Value, gradient and information."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Maximum:
    """Where the likelihood is largest."""

    parameters: Float[ndarray, " parameters"]
    """The estimate."""
    covariance: Float[ndarray, "parameters parameters"]
    """The inverse of the observed information."""
    determined: Bool[ndarray, " parameters"]
    """False for parameters about which the dataset says nothing."""
    converged: bool
    """Whether a maximum was found."""


def maximise(likelihood: Likelihood) -> Maximum:
    """Newton's method; a step that does not go up is halved."""
    parameters, converged = likelihood.start(), False
    here = likelihood.at(parameters)
    for _ in range(MAX_STEPS):
        step = solve(here.information[None], here.slope[None])[0]
        converged = bool(abs(step @ here.information @ step) < CONVERGED)
        parameters, here = _upwards(likelihood, parameters, step, here)
        if converged:
            break
    covariance, determined = invert(here.information[None])
    return Maximum(parameters=parameters, covariance=covariance[0], determined=determined[0], converged=converged)


def _upwards(
    likelihood: Likelihood, parameters: Float[ndarray, " parameters"], step: Float[ndarray, " parameters"], here: Curve
) -> tuple[ndarray, Curve]:
    for halvings in range(30):
        moved = parameters + step / 2**halvings
        there = likelihood.at(moved)
        if there.value >= here.value - 1e-10 * (1 + abs(here.value)):
            return moved, there
    return parameters, here


def fit_each(
    terms: Sequence[str],
    made: Sequence[Design],
    likelihood_of: Callable[[Design, Float[ndarray, " distinct"]], Likelihood],
    notes: tuple[str, ...],
    variables: Mapping[str, tuple[str, ...]],
    title: str,
) -> Estimates:
    """Fit every dataset of every design by itself."""
    separate = [(design, counts) for design in made for counts in design.counts]
    maxima = each(lambda number: maximise(likelihood_of(*separate[number])), len(separate))
    determined = np.stack([one.determined for one in maxima])
    converged = np.array([one.converged for one in maxima])[:, None]
    masks: dict[str, Any] = {EMPTY: converged & ~determined, DIVERGED: np.broadcast_to(~converged, determined.shape)}
    return Estimates(
        terms=tuple(terms),
        values=np.stack([one.parameters for one in maxima]),
        covariances=np.stack([one.covariance for one in maxima]),
        used=determined & converged,
        left_out=counted(masks),
        notes=notes,
        variables=variables,
        title=title,
    )
