"""Repeats of the toy study, as it should be run and as it should not, for tests of coverage."""

from dataclasses import dataclass, replace

import numpy as np

from experiments.seeded_noise import SeededNoise
from noisewise.analysis import analyze, glm
from noisewise.demo import FAMILY, FORMULA, TRUTH, compare, demo_schema, demo_table
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.fit import fit
from noisewise.posterior.laplace import Laplace
from noisewise.privacy.budget import Budget
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.synthesis import synthesize
from noisewise.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Shares of 95 % intervals that contain the truth, over repeats, by coefficient."""

    pooled: dict[str, float]
    """Intervals as noisewise gives them."""
    one_dataset: dict[str, float]
    """Broken twin: the ordinary interval of one synthetic dataset."""
    no_noise: dict[str, float]
    """Broken twin: the likelihood is told that there was no noise."""


def coverage(epsilon: float, repeats: int, seed: int) -> Coverage:
    """Draw fresh data and fresh noise in every repeat."""
    hits = [_one_repeat(epsilon, seed * 100_000 + repeat) for repeat in range(repeats)]
    return Coverage(**{name: _share([hit[name] for hit in hits]) for name in ("pooled", "one_dataset", "no_noise")})


def _one_repeat(epsilon: float, seed: int) -> dict[str, dict[str, bool]]:
    schema = demo_schema()
    noisy_counts = measure_with_insecure_noise_for_tests(
        demo_table(seed),
        schema,
        Workload.of(schema, [schema.names]),
        Budget(epsilon=epsilon),
        noise=SeededNoise(seed),
    )
    pooled, single = _analyzed(noisy_counts, seed)
    unaware, _ = _analyzed(_as_if_exact(noisy_counts), seed)
    return {"pooled": pooled, "one_dataset": single, "no_noise": unaware}


def _analyzed(noisy_counts: NoisyCounts, seed: int) -> tuple[dict[str, bool], dict[str, bool]]:
    posterior = fit(noisy_counts, Laplace(), seed=seed)
    datasets = synthesize(posterior, datasets=100, seed=seed, allow_untrusted=True)
    comparison = compare(analyze(datasets, glm(FORMULA, family=FAMILY)))
    return (
        {term: one.covers(TRUTH[term]) for term, one in comparison.pooled.items()},
        {term: one[0].covers(TRUTH[term]) for term, one in comparison.single.items()},
    )


def _as_if_exact(noisy_counts: NoisyCounts) -> NoisyCounts:
    """The same counts, with the noise left out of the likelihood."""
    measurements = tuple(replace(m, values=m.values.copy(), stddev=1e-3) for m in noisy_counts.measurements)
    return replace(noisy_counts, measurements=measurements)


def _share(hits: list[dict[str, bool]]) -> dict[str, float]:
    return {term: float(np.mean([hit[term] for hit in hits])) for term in TRUTH}
