"""Any analysis: a function of one dataset, whatever library it uses.

The function may return a fitted result that looks like those of statsmodels, or an estimate with its variance, or a
vector with its covariance matrix. Without a variance, `Bootstrap` finds one by resampling rows.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float
from numpy import ndarray

from noisewise.analysis.estimates import Estimates, Estimator
from noisewise.analysis.parallel import each
from noisewise.errors import AnalysisError
from noisewise.synthesis import SparkDatasets

NUMERICAL = (ArithmeticError, ValueError, RuntimeError)
"""What a fit on unlucky data raises (LinAlgError is a ValueError); anything else is a mistake in the function."""
NOT_FINITE = "the analysis returned a value that is not a finite number"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """What one dataset gave."""

    terms: tuple[str, ...]
    """Names of the estimands."""
    values: Float[ndarray, " terms"]
    """The estimates."""
    covariance: Float[ndarray, "terms terms"]
    """Their covariance matrix."""


@dataclass(frozen=True)
class Custom(Estimator):
    """Any function of one dataset that returns estimates with their variances.

        analyze(datasets, Custom(lambda frame: smf.rlm("y ~ x", frame).fit(), formula="y ~ x"))
        analyze(datasets, Custom(lambda frame: (frame["y"].mean(), frame["y"].var() / len(frame))))

    A dataset on which it fails numerically, or returns something not finite, is left out and counted.
    """

    function: Callable[[Any], Any]
    """Takes a dataset; returns a statsmodels-like result, (estimate, variance), or (vector, covariance matrix)."""
    formula: str = ""
    """The columns it uses, as a formula, for the support check; empty if unknown."""
    terms: tuple[str, ...] = ()
    """Names of the estimands, where the function's result does not name them."""
    title: str = ""
    """What the summary calls the analysis; by default the function's name."""
    convert: Callable[[pa.Table], Any] = field(default=pa.Table.to_pandas)
    """Makes what the function takes from an Arrow table; by default a pandas frame. Other frames pass as they are."""
    workers: int = 1
    """How many datasets are worked on at a time, in threads; the function must bear that."""

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return collect(datasets, self._read, self.title or f"Custom analysis: {name}", self.workers)

    def _read(self, dataset: Any, number: int) -> Reading:
        return read(self.function(native(dataset, self.convert)), self.terms)


@dataclass(frozen=True)
class Bootstrap(Estimator):
    """Any function of one dataset that returns estimates only; variances come from resampling its rows.

    analyze(datasets, Bootstrap(lambda frame: frame["hours"].median(), terms=("median",)))
    """

    function: Callable[[Any], Any]
    """Takes a dataset; returns a number, a vector, or a pandas Series (whose index names the terms)."""
    formula: str = ""
    """The columns it uses, as a formula, for the support check; empty if unknown."""
    terms: tuple[str, ...] = ()
    """Names of the estimands, where the function's result does not name them."""
    resamples: int = 50
    """Bootstrap resamples per dataset."""
    seed: int = 0
    """Seed of the resampling; dataset i uses the i-th child of it."""
    title: str = ""
    """What the summary calls the analysis; by default the function's name."""
    convert: Callable[[pa.Table], Any] = field(default=pa.Table.to_pandas)
    """Makes what the function takes from an Arrow table; by default a pandas frame."""
    workers: int = 1
    """How many datasets are worked on at a time, in threads; the function must bear that."""

    def fit(self, datasets: Sequence[Any]) -> Estimates:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        title = self.title or f"Bootstrap: {name} ({self.resamples} resamples)"
        return collect(datasets, self._read, title, self.workers)

    def _read(self, dataset: Any, number: int) -> Reading:
        import narwhals as nw

        whole = native(dataset, self.convert)
        rows = nw.from_native(whole, eager_only=True)
        return resampled(
            lambda chosen: self.function(whole if chosen is None else rows[chosen].to_native()),
            len(rows),
            self.terms,
            self.resamples,
            np.random.SeedSequence(self.seed, spawn_key=(number,)),
        )


def native(dataset: Any, convert: Callable[[pa.Table], Any]) -> Any:
    """A dataset as the function wants it."""
    return convert(dataset) if isinstance(dataset, pa.Table) else dataset


def resampled(
    estimate: Callable[[Any], Any], rows: int, terms: tuple[str, ...], resamples: int, seed: np.random.SeedSequence
) -> Reading:
    """Estimates on all rows (`estimate(None)`), with the covariance of estimates on resampled row numbers."""
    if resamples < 2:
        raise AnalysisError(f"resamples is {resamples}; a variance needs at least 2, better 50 or more.")
    generator = np.random.default_rng(seed)
    names, values = _vector(estimate(None), terms)
    again = np.stack([_vector(estimate(generator.integers(0, rows, rows)), terms)[1] for _ in range(resamples)])
    covariance = np.cov(again, rowvar=False).reshape(len(values), len(values))
    return Reading(terms=names, values=values, covariance=covariance)


def read(result: Any, terms: tuple[str, ...] = ()) -> Reading:
    """Understand what an analysis returned."""
    if hasattr(result, "params") and hasattr(result, "cov_params"):
        covariance = result.cov_params() if callable(result.cov_params) else result.cov_params
        names = terms or _names(covariance) or _names(result.params)
        return _reading(names, np.ravel(np.asarray(result.params, float), order="F"), covariance)
    if isinstance(result, tuple | list) and len(result) == 2:
        names, values = _vector(result[0], terms)
        return _reading(names, values, result[1])
    raise AnalysisError(
        f"The analysis returned a {type(result).__name__}. Return (estimate, variance), (vector, covariance matrix), "
        "or a fitted result with params and cov_params(); without a variance use Bootstrap."
    )


def _reading(names: tuple[str, ...], values: Float[ndarray, " terms"], covariance: Any) -> Reading:
    matrix = np.asarray(covariance, float)
    size = len(values)
    if matrix.shape == (size,) and size > 1:
        raise AnalysisError(
            f"The analysis returned {size} estimates with {size} variances. Return the covariance matrix; if the "
            "estimates are independent it is np.diag(variances)."
        )
    if matrix.size != size * size:
        raise AnalysisError(
            f"The analysis returned {size} estimates with a covariance of shape {matrix.shape}. Return one of shape "
            f"({size}, {size})."
        )
    return Reading(terms=names or _numbered(size), values=values, covariance=matrix.reshape(size, size))


def _vector(result: Any, terms: tuple[str, ...]) -> tuple[tuple[str, ...], Float[ndarray, " terms"]]:
    values = np.atleast_1d(np.asarray(result, float))
    names = terms or _names(result) or _numbered(values.size)
    if values.ndim != 1 or len(names) != values.size:
        raise AnalysisError(
            f"The analysis returned estimates of shape {values.shape} for {len(names)} terms. Return a number per term."
        )
    return names, values


def _names(result: Any) -> tuple[str, ...]:
    """The row names of a pandas object; nothing for anything else."""
    index = getattr(result, "index", None)
    if index is None or callable(index):
        return ()
    return tuple(": ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in index)


def _numbered(size: int) -> tuple[str, ...]:
    return ("estimate",) if size == 1 else tuple(f"estimate {i}" for i in range(size))


def collect(
    datasets: Sequence[Any], fit_one: Callable[[Any, int], Reading], title: str, workers: int | None
) -> Estimates:
    """Run an analysis on each dataset; what fails or is not finite is left out and counted by reason."""
    if isinstance(datasets, SparkDatasets):
        attempts = datasets.map(partial(_attempt, fit_one))
    else:
        attempts = each(lambda number: _attempt(fit_one, datasets[number], number), len(datasets), workers)
    readings = [reading for reading, _ in attempts]
    left_out = dict(Counter(reason for _, reason in attempts if reason))
    found = [reading for reading in readings if reading is not None]
    if not found:
        raise AnalysisError(f"The analysis failed on all {len(readings)} datasets: {'; '.join(left_out)}.")
    return _stacked(tuple(dict.fromkeys(term for one in found for term in one.terms)), readings, left_out, title)


def _attempt(fit_one: Callable[[Any, int], Reading], dataset: Any, number: int) -> tuple[Reading | None, str]:
    try:
        reading = fit_one(dataset, number)
    except AnalysisError as error:
        return None, str(error).rstrip(".")
    except NUMERICAL as error:
        return None, f"the analysis failed ({type(error).__name__}: {error})"
    except Exception as error:
        raise AnalysisError(
            f"The analysis stopped on dataset {number} with {type(error).__name__}: {error}. This looks like a mistake "
            "in the function; failures that depend on the data should raise a ValueError."
        ) from error
    finite = np.isfinite(reading.values).all() and np.isfinite(reading.covariance).all()
    return reading, "" if finite else NOT_FINITE


def _stacked(
    terms: tuple[str, ...], readings: Sequence[Reading | None], left_out: dict[str, int], title: str
) -> Estimates:
    """Readings side by side by the names of their terms; a term that a dataset lacks is left out there."""
    values = np.zeros((len(readings), len(terms)))
    covariances = np.zeros((len(readings), len(terms), len(terms)))
    used = np.zeros(values.shape, bool)
    for number, reading in enumerate(readings):
        if reading is None:
            continue
        at = [terms.index(term) for term in reading.terms]
        fine = np.isfinite(reading.values) & np.isfinite(np.diagonal(reading.covariance))
        used[number, at] = fine
        values[number, at] = np.where(fine, reading.values, 0.0)
        covariances[number][np.ix_(at, at)] = np.where(np.isfinite(reading.covariance), reading.covariance, 0.0)
        for term in terms:
            if term not in reading.terms:
                reason = f"the result has no term {term!r}"
                left_out[reason] = left_out.get(reason, 0) + 1
    return Estimates(terms=terms, values=values, covariances=covariances, used=used, left_out=left_out, title=title)
