"""Sampling the posterior with the no-U-turn sampler until the verdict holds.

The target is exact: what is prepared here (maps, metric, step size) decides only how fast the chains mix. Chains run in
short stretches; after each the draws are judged, progress is told, and an interruption keeps what is there.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from noisewise.errors import FitError
from noisewise.posterior import values
from noisewise.posterior.arrays import Arrays
from noisewise.posterior.diagnostics import ess_bulk, ess_tail, rhat
from noisewise.posterior.maps import Maps, lines_at, monotone_maps
from noisewise.posterior.problem import Problem
from noisewise.posterior.result import Verdict
from noisewise.posterior.start import starting_odds
from noisewise.progress import Progress

RHAT_LIMIT = 1.01
ESS_LIMIT = 400
STRETCH = 25
"""Draws of each chain between two looks."""
PILOTS = 8
"""Stretches in which the step size and the metric settle; they are thrown away."""
CURVATURES = 30
"""Points whose curvature is averaged into the metric."""
MAX_DENSE_METRIC = 1500
"""Dimensions up to which the metric is a matrix."""


@dataclass(frozen=True, kw_only=True)
class Nuts:
    """Draw from the posterior by the no-U-turn sampler, until the verdict holds.

    The verdict: rank-normalised split R-hat at most 1.01, bulk and tail effective sample size at least 400 on the
    expected count of every measured cell. Right for any noise; takes seconds where `Laplace` takes less.
    """

    chains: int = 4
    """Number of chains."""
    max_draws: int = 10_000
    """Most draws of each chain; a posterior whose verdict does not hold by then says so."""
    target_acceptance: float = 0.85
    """Acceptance rate that the step size is set to."""

    def __post_init__(self) -> None:
        if self.chains < 2 or self.max_draws < 2 * STRETCH or not 0.5 <= self.target_acceptance < 1:
            raise FitError(
                f"{self}: chains must be 2 or more, max_draws {2 * STRETCH} or more, target_acceptance from 0.5 to 1."
            )


def nuts_draws(
    problem: Problem, method: Nuts, seed: int, progress: Progress
) -> tuple[Float[np.ndarray, "chains draws parameters"], Verdict]:
    """Prepare, sample until the verdict holds, and judge."""
    if seed < 0:
        raise FitError(f"seed={seed} must not be negative.")
    progress("preparing the sampler", 0, 0)
    sampling = _Sampling(problem, method, seed)
    sampling.settle(progress)
    return sampling.sample(progress)


class _Sampling:
    """Chains and what has been learnt about them; lives for one fit."""

    def __init__(self, problem: Problem, method: Nuts, seed: int) -> None:
        import jax

        from noisewise.posterior.sampler import Space
        from noisewise.posterior.target import target_data

        self.method, self.random = method, np.random.default_rng(seed)
        self.key = jax.random.key(seed)
        self.arrays = Arrays.of(problem)
        self.maps = _maps(self.arrays)
        data, self.shape = target_data(self.arrays)
        self.dimensions = self.arrays.parameters + self.shape.latent
        self.dense = self.dimensions <= MAX_DENSE_METRIC
        self.space = Space(data, self.maps.coefficients, np.ones(self.dimensions))
        self.step = 0.5 if self.dense else 0.1
        self.divergences = self.leapfrogs = 0

    def settle(self, progress: Progress) -> None:
        """Find metric and step size."""
        v = self.random.normal(0, 0.8, (CURVATURES, self.dimensions))
        self._measure(v)
        points = self._inverse(v[: self.method.chains] * 0.5)
        for number in range(PILOTS):
            progress("settling", number, PILOTS)
            run = self._stretch(points)
            points = run.points[:, -1]
            accepted = float(np.mean(run.acceptance))
            self.step *= math.exp(np.clip(2.5 * (accepted - self.method.target_acceptance), -1.5, 0.4))
            if number in (1, 3, 5):
                pilot = self._spread(run.points[:, STRETCH // 3 :].reshape(-1, self.dimensions))
                here = self._spread(points)
                self._measure(pilot[self.random.choice(len(pilot), CURVATURES, replace=False)])
                points = self._inverse(here)
        self.points = points

    def sample(self, progress: Progress) -> tuple[np.ndarray, Verdict]:
        """Draw until the verdict holds."""
        drawn: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        checked, worst, interrupted = 0, (math.inf, 0.0), False
        try:
            while len(drawn) * STRETCH < self.method.max_draws:
                run = self._stretch(self.points)
                self.points = run.points[:, -1]
                self.divergences += int(np.sum(run.divergent))
                self.leapfrogs += int(np.sum(run.steps))
                free = self._odds(run.points)
                drawn.append(free)
                counts.append(self._counts(free))
                if len(drawn) >= max(4, checked * 1.15):
                    checked = len(drawn)
                    worst = _worst(np.concatenate(counts, 1))
                    if worst[0] <= RHAT_LIMIT and worst[1] >= ESS_LIMIT:
                        break
                progress(
                    f"sampling: {len(drawn) * STRETCH * self.method.chains} draws, R-hat {worst[0]:.3f}, "
                    f"ESS {worst[1]:.0f}",
                    int(min(worst[1], ESS_LIMIT)),
                    ESS_LIMIT,
                )
        except KeyboardInterrupt:
            if len(drawn) < 4:
                raise
            interrupted = True
        return self._theta(np.concatenate(drawn, 1)), self._verdict(np.concatenate(counts, 1), interrupted)

    def _stretch(self, points: np.ndarray) -> Any:
        import jax

        from noisewise.posterior.sampler import Run, run_chains

        self.key, key = jax.random.split(self.key)
        keys = jax.random.split(key, self.method.chains)
        run = run_chains(keys, points, self.step, self.space, self.shape, STRETCH)
        return Run(*map(np.asarray, run))

    def _spread(self, points: np.ndarray) -> np.ndarray:
        root = self.space.root
        return points * root if root.ndim == 1 else points @ root.T

    def _inverse(self, v: np.ndarray) -> np.ndarray:
        root = self.space.root
        return v / root if root.ndim == 1 else np.linalg.solve(root, v.T).T

    def _measure(self, v: np.ndarray) -> None:
        """The metric: the average curvature over some points, made positive."""
        if not self.dense:
            return
        plain = self.space._replace(root=np.ones(self.dimensions))
        curvature = np.mean([self._curvature(point, plain) for point in v], axis=0)
        eigenvalues, vectors = np.linalg.eigh(curvature)
        self.space = self.space._replace(root=vectors / np.sqrt(np.maximum(eigenvalues, 0.3)))

    def _curvature(self, point: np.ndarray, plain: Any) -> np.ndarray:
        from noisewise.posterior.sampler import gradients

        shift = 1e-4 * np.eye(self.dimensions)
        up, down = (np.asarray(gradients(point + s, plain, self.shape)[1]) for s in (shift, -shift))
        matrix = (down - up) / 2e-4
        return np.nan_to_num(0.5 * (matrix + matrix.T))

    def _odds(self, points: np.ndarray) -> np.ndarray:
        chains, draws, _ = points.shape
        u = self._spread(points.reshape(chains * draws, -1))[:, : self.arrays.parameters]
        return self.maps(u.T).T.reshape(chains, draws, -1)

    def _counts(self, free: np.ndarray) -> np.ndarray:
        flat = free.reshape(-1, free.shape[-1]).T
        return values.expected_counts(self.arrays, flat).T.reshape(*free.shape[:2], -1)

    def _theta(self, free: np.ndarray) -> np.ndarray:
        flat = free.reshape(-1, free.shape[-1]).T
        theta = values.theta_of(self.arrays, *values.log_probabilities(self.arrays, flat))
        return np.ascontiguousarray(theta.T).reshape(free.shape)

    def _verdict(self, counts: np.ndarray, interrupted: bool) -> Verdict:
        worst_rhat, worst_ess = _worst(counts)
        chains, draws, _ = counts.shape
        reasons = []
        if interrupted:
            reasons.append(f"Sampling was interrupted after {draws} draws of each chain.")
        if not worst_rhat <= RHAT_LIMIT:
            reasons.append(f"The chains disagree: R-hat = {worst_rhat:.3f} on an expected count (1.01 is good).")
        if not worst_ess >= ESS_LIMIT:
            reasons.append(f"Too few effective draws: {worst_ess:.0f} for an expected count (400 are enough).")
        if self.divergences > 0.01 * chains * draws:
            reasons.append(
                f"{self.divergences} of {chains * draws} draws diverged: parts of the posterior may be missed."
            )
        trusted = not reasons
        said = f"{chains} chains of {draws} draws: R-hat at most {worst_rhat:.3f}, {worst_ess:.0f} effective draws."
        return Verdict(
            trusted=trusted,
            summary=said if trusted else "The chains have not converged. " + said,
            reasons=tuple(reasons),
            numbers={
                "rhat": float(min(worst_rhat, 99)),
                "ess": float(worst_ess),
                "divergences": float(self.divergences),
                "draws": float(draws),
                "gradients": float(self.leapfrogs),
                "step": float(self.step),
            },
        )


def _maps(arrays: Arrays) -> Maps:
    odds = starting_odds(arrays)
    free = odds[arrays.free] - odds[arrays.reference[arrays.layout.row_of[arrays.free]]]
    log_p, ell = values.log_probabilities(arrays, free[:, None])
    theta = values.theta_of(arrays, log_p, ell)[:, 0]
    expected = values.expected_rows(arrays, np.exp(log_p))[:, 0]
    return monotone_maps(lines_at(arrays, log_p[:, 0], theta, expected), free)


def _worst(counts: Float[np.ndarray, "chains draws cells"]) -> tuple[float, float]:
    """Largest R-hat and smallest effective size over the measured cells."""
    return float(rhat(counts).max()), float(min(ess_bulk(counts).min(), ess_tail(counts).min()))
