"""Convergence and reliability of a sample, judged on the expected counts.

R-hat and effective sample sizes are the rank-normalised, split ones of Vehtari, Gelman, Simpson, Carpenter &
Bürkner (2021); the Pareto k̂ of importance weights follows Vehtari, Simpson, Gelman, Yao & Gabry (2024) with the
estimator of Zhang & Stephens (2009). Written here in NumPy, for all quantities at once, because the
libraries that have them bring xarray and pandas, which takes longer to import than a fit takes to run; the
tests compare every function with ArviZ.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

Draws = Float[np.ndarray, "chains draws quantities"]
Quantities = Float[np.ndarray, " quantities"]


def rhat(draws: Draws) -> Quantities:
    """Rank-normalised split R-hat of each quantity: the larger of the bulk and the folded one."""
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_plain_rhat(_rank_normalise(halves)), _plain_rhat(_rank_normalise(folded)))


def ess_bulk(draws: Draws) -> Quantities:
    """Effective number of draws for the centre of each quantity."""
    return _ess(_rank_normalise(_split(draws)))


def ess_tail(draws: Draws) -> Quantities:
    """Effective number of draws for the 5 % and 95 % quantiles of each quantity, the smaller of the two."""
    halves = _split(draws)
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return np.minimum(_ess((halves <= low).astype(float)), _ess((halves <= high).astype(float)))


def pareto_k(log_weights: Float[np.ndarray, " draws"]) -> float:
    """Shape of the upper tail of importance weights; below 0.7 the weighted sample can be trusted."""
    return _tail(log_weights)[0]


def pareto_smoothed(log_weights: Float[np.ndarray, " draws"]) -> Float[np.ndarray, " draws"]:
    """The weights with the largest replaced by the expected order statistics of the tail fitted to them.

    None becomes larger than the largest was. Relative to it; unchanged where no tail can be fitted.
    """
    top = log_weights.max()
    shape, scale, count = _tail(log_weights)
    if not (math.isfinite(shape) and count):
        return np.asarray(log_weights - top)
    order = np.argsort(log_weights, kind="stable")
    found = log_weights - top
    threshold = np.exp(found[order[-count - 1]])
    levels = -np.log1p(-(np.arange(count) + 0.5) / count)
    quantiles = scale * (np.expm1(shape * levels) / shape if abs(shape) > 1e-12 else levels)
    found[order[-count:]] = np.minimum(np.log(threshold + quantiles), 0.0)
    return np.asarray(found)


def _tail(log_weights: Float[np.ndarray, " draws"]) -> tuple[float, float, int]:
    """Shape and scale of a generalised Pareto distribution fitted to the largest weights, and how many those are."""
    size = len(log_weights)
    tail = math.floor(min(0.2 * size, 3 * math.sqrt(size)))
    if tail < 5 or not np.isfinite(log_weights).all():
        return math.inf, math.inf, 0
    ordered = np.sort(np.exp(log_weights - log_weights.max()))
    threshold = ordered[-tail - 1]
    excess = ordered[-tail:] - threshold
    if excess[-1] <= np.finfo(float).tiny or excess[0] < 0:
        return (math.inf if excess[-1] > 0 else -math.inf), 0.0, 0
    return *_generalised_pareto(np.maximum(excess, np.finfo(float).tiny)), tail


def _generalised_pareto(excess: Float[np.ndarray, " tail"]) -> tuple[float, float]:
    """Zhang & Stephens' estimates of shape and scale, the shape shrunk towards 1/2 by ten pseudo-observations."""
    size = len(excess)
    grid = 30 + int(math.sqrt(size))
    quartile = excess[int(size / 4 + 0.5) - 1]
    inverse_scale = 1 / excess[-1] + (1 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3 * quartile)
    shape = np.log1p(-inverse_scale[:, None] * excess).mean(1)
    profile = size * (np.log(-inverse_scale / shape) - shape - 1)
    weights = 1 / np.exp(profile - profile[:, None]).sum(1)
    weights = np.where(weights >= 10 * np.finfo(float).eps, weights, 0)
    best = float((inverse_scale * weights).sum() / weights.sum())
    estimate = float(np.log1p(-best * excess).mean())
    return (size * estimate + 10 * 0.5) / (size + 10), -estimate / best


def _split(draws: Draws) -> Float[np.ndarray, "halves half quantities"]:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]], axis=0)


def _rank_normalise(draws: Draws) -> Draws:
    """Replace values by normal scores of their ranks over all chains; ties share their mean rank."""
    flat = np.ascontiguousarray(draws.reshape(-1, draws.shape[-1]).T)  # sorting is fast along what lies together
    size = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    edge = np.ones((len(flat), 1), bool)
    rises = ordered[:, 1:] != ordered[:, :-1]
    position = np.arange(size)
    first = np.maximum.accumulate(np.where(np.hstack([edge, rises]), position, 0), axis=1)
    last = np.minimum.accumulate(np.where(np.hstack([rises, edge]), position, size)[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty_like(flat)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    scores: np.ndarray = ndtri((ranks - 0.375) / (size + 0.25))
    return scores.T.reshape(draws.shape)


def _plain_rhat(draws: Draws) -> Quantities:
    length = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(0)
    between = draws.mean(1).var(axis=0, ddof=1)
    constant = within <= 0
    ratio = between / np.where(constant, 1, within)
    value = np.sqrt((length - 1) / length + ratio)
    return np.where(constant, np.where(between > 0, np.inf, 1.0), value)


def _ess(draws: Draws) -> Quantities:
    """Effective sample size by Geyer's initial monotone sequence over the chains' pooled autocorrelations."""
    chains, length, _ = draws.shape
    covariance = _autocovariance(draws)
    mean_variance = covariance[:, 0].mean(0) * length / (length - 1)
    pooled = mean_variance * (length - 1) / length + (draws.mean(1).var(0, ddof=1) if chains > 1 else 0)
    constant = pooled <= 0
    correlation = 1 - (mean_variance - covariance.mean(0)) / np.where(constant, 1, pooled)
    correlation[0] = 1
    count = (length - 1) // 2
    pairs = correlation[: 2 * count].reshape(count, 2, -1)
    sums = pairs.sum(1)
    stop = np.where((sums > 0).all(0), count - 1, np.argmin(sums > 0, axis=0))  # first pair left out
    kept = np.arange(count)[:, None] < np.maximum(stop, 1)
    monotone = np.minimum.accumulate(np.where(kept, sums, np.inf), axis=0)
    total = np.where(kept, monotone, 0).sum(0)
    even, positive = (np.take_along_axis(of, stop[None], axis=0)[0] for of in (pairs[:, 0], sums > 0))
    tail = np.where(positive, even, np.maximum(even, 0))  # still positive where the lags ran out
    time = np.maximum(2 * total - 1 + tail, 1 / math.log10(chains * length))
    return np.where(constant, float(chains * length), chains * length / time)


def _autocovariance(draws: Draws) -> Draws:
    length = draws.shape[1]
    centred = draws - draws.mean(1, keepdims=True)
    size = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(centred, n=size, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.asarray(np.fft.irfft(power, n=size, axis=1)[:, :length] / length)
