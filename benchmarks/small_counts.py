"""What the normal approximation of the counts costs where counts are small, against exact quadrature.

Run: python -m benchmarks.small_counts. One column of two or three levels, 1,000 rows: the counts are binomial or
multinomial, the noise is discrete Gaussian, and the posterior can be had on a grid, exactly or with the normal
approximation that the model makes. No sampler is involved.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

ROWS, PRIOR = 1_000, 10.0
EXPECTED = (0.5, 1, 2, 5, 10, 30, 100)
NOISE = (0.2, 1, 3, 10, 50)
DATASETS = 400
GRID = np.concatenate([np.linspace(-60, -12, 500)[:-1], np.linspace(-12, 0, 4_001), np.linspace(0, 8, 100)[1:]])
"""Log odds of the small cell, to where the prior ends."""
LEVEL = 0.95

Table = np.ndarray


def discrete_gaussian(stddev: float) -> tuple[Table, Table]:
    """Whole numbers and their probabilities, proportional to exp(-k²/2σ²)."""
    numbers = np.arange(-int(12 * stddev + 3), int(12 * stddev + 4))
    weights = np.exp(-0.5 * (numbers / stddev) ** 2)
    return numbers, weights / weights.sum()


def log_noise(left: Table, stddev: float) -> Table:
    """Log probability of noise, up to a constant."""
    return -0.5 * (left / stddev) ** 2


def log_p(theta: Table) -> tuple[Table, Table]:
    """Log probabilities of the small cell and of the other."""
    return -np.logaddexp(0, -theta), -np.logaddexp(0, theta)


def exact(first: Table, second: Table, stddev: float) -> Table:
    """Log likelihood (grid, data): the sum over all counts."""
    counts = np.arange(ROWS + 1)
    yes, no = log_p(GRID)
    log_count = gammaln(ROWS + 1) - gammaln(counts + 1) - gammaln(ROWS - counts + 1)
    binomial = log_count + np.outer(yes, counts) + np.outer(no, ROWS - counts)
    noise = log_noise(first - counts[:, None], stddev) + log_noise(second - ROWS + counts[:, None], stddev)
    top = noise.max(0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(binomial) @ np.exp(noise - top)) + top)


def normal(variance: Callable[[Table, Table, Table], Table]) -> Callable[[Table, Table, float], Table]:
    """Log likelihood with normal counts of some variance, a function of n p (1 - p) and the noisy counts."""

    def likelihood(first: Table, second: Table, stddev: float) -> Table:
        # The two counts are c and n - c: their difference tells of c, with half the noise's variance.
        p = np.exp(log_p(GRID)[0])[:, None]
        seen, noise = 0.5 * (first - second + ROWS), 0.5 * stddev**2
        whole = variance(ROWS * p * (1 - p), seen[None], np.asarray(noise)) + noise
        return np.asarray(-0.5 * (seen - ROWS * p) ** 2 / whole - 0.5 * np.log(whole))

    return likelihood


def soft(count: Table, scale: Table) -> Table:
    return np.asarray(scale * np.logaddexp(0, count / scale))


METHODS: dict[str, Callable[[Table, Table, float], Table]] = {
    "as it is": normal(lambda own, seen, noise: own),
    "floor of 1": normal(lambda own, seen, noise: own + 1),
    "variance at the noisy count": normal(lambda own, seen, noise: soft(seen, 0.7 * np.sqrt(noise) + 0.5) + 0 * own),
    "half own, half noisy count's": normal(
        lambda own, seen, noise: 0.5 * own + 0.5 * soft(seen, 0.7 * np.sqrt(noise) + 0.5)
    ),
}


class Compared(NamedTuple):
    """A likelihood's posterior of the expected count against the exact one, averaged over data."""

    mean: float
    """Difference of the means, in exact standard deviations; mean of the absolute value."""
    spread: float
    """Ratio of the standard deviations; median."""
    inside: float
    """Exact posterior probability of the approximate 95 % interval; mean."""
    covered: float
    """How often that interval has the true expected count."""
    covered_exactly: float
    """How often the exact posterior's interval has it."""


def drawn(expected: float, stddev: float, random: np.random.Generator) -> tuple[Table, Table]:
    """Noisy counts of both cells."""
    numbers, weights = discrete_gaussian(stddev)
    counts = random.binomial(ROWS, expected / ROWS, DATASETS)
    noise = random.choice(numbers, (2, DATASETS), p=weights)
    return counts + noise[0], ROWS - counts + noise[1]


def posterior(log_likelihood: Table) -> Table:
    """Weights over the grid."""
    value = log_likelihood - 0.5 * (GRID[:, None] / PRIOR) ** 2 + np.log(np.gradient(GRID))[:, None]
    return np.asarray(np.exp(value - logsumexp(value, axis=0)))


def interval(weights: Table) -> tuple[Table, Table, Table]:
    """The ends of the central 95 % interval, as places on the grid, and the cumulated weights."""
    below = np.cumsum(weights, axis=0)
    low = (below < (1 - LEVEL) / 2).sum(0)
    high = (below < 1 - (1 - LEVEL) / 2).sum(0)
    return low, np.minimum(high, len(GRID) - 1), below


def compared(expected: float, stddev: float, random: np.random.Generator) -> dict[str, Compared]:
    data = drawn(expected, stddev, random)
    value = ROWS * np.exp(log_p(GRID)[0])
    truth = posterior(exact(*data, stddev))
    mean = value @ truth
    spread = np.sqrt(value**2 @ truth - mean**2)
    low, high, below = interval(truth)
    column = np.arange(DATASETS)
    true_place = int(np.searchsorted(value, expected))
    covered_exactly = ((low <= true_place) & (true_place <= high)).mean()
    found = {}
    for name, method in METHODS.items():
        weights = posterior(method(*data, stddev))
        own_mean = value @ weights
        own_spread = np.sqrt(np.maximum(value**2 @ weights - own_mean**2, 0))
        low, high, _ = interval(weights)
        mass = below[high, column] - np.where(low > 0, below[low - 1, column], 0)
        found[name] = Compared(
            float(np.abs((own_mean - mean) / spread).mean()),
            float(np.median(own_spread / spread)),
            float(mass.mean()),
            float(((low <= true_place) & (true_place <= high)).mean()),
            float(covered_exactly),
        )
    return found


# Two parameters: a column of three levels, two of them rare

AXIS = np.concatenate([np.linspace(-32, -10, 41)[:-1], np.linspace(-10, -1, 91)])
MOST = 45
"""Counts of the rare levels that are summed over; more are out of reach of an expected 10 or less."""
PAIRS = ((0.5, 2.0), (1.0, 5.0), (5.0, 10.0))


def of_two() -> list[str]:
    """Lines of a table: the worse of the two rare cells."""
    a, b = (of.reshape(-1, 1) for of in np.meshgrid(AXIS, AXIS, indexing="ij"))
    weight = np.log(np.outer(np.gradient(AXIS), np.gradient(AXIS))).reshape(-1, 1) - 0.5 * (a**2 + b**2) / PRIOR**2
    log_total = np.logaddexp(0, np.logaddexp(a, b))
    p = np.exp(np.concatenate([a, b, np.zeros_like(a)], 1) - log_total)
    i, j = (of.reshape(1, -1) for of in np.indices((MOST, MOST)))
    log_count = gammaln(ROWS + 1) - gammaln(i + 1) - gammaln(j + 1) - gammaln(ROWS - i - j + 1)
    multinomial = np.exp(log_count + i * a + j * b - ROWS * log_total)
    counts = np.stack([i[0], j[0], ROWS - i[0] - j[0]])
    lines, random = [], np.random.default_rng(1)
    for pair in PAIRS:
        for stddev in NOISE[:3]:
            share = np.array([*pair, ROWS - sum(pair)]) / ROWS
            numbers, chances = discrete_gaussian(stddev)
            noisy = random.multinomial(ROWS, share, 60).T + random.choice(numbers, (3, 60), p=chances)
            noise = sum(log_noise(noisy[k] - counts[k][:, None], stddev) for k in range(3))
            with np.errstate(divide="ignore"):
                truth = np.log(multinomial @ np.exp(noise - noise.max(0))) + weight
            covariance = ROWS * (p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None]) + stddev**2 * np.eye(3)
            left = noisy[None] - ROWS * p[:, :, None]
            square = (left * np.linalg.solve(covariance, left)).sum(1)
            approximate = -0.5 * square - 0.5 * np.linalg.slogdet(covariance)[1][:, None] + weight
            weights = [np.exp(of - logsumexp(of, axis=0)) for of in (truth, approximate)]
            figures = np.array([_beside(ROWS * p[:, k], *weights) for k in range(2)])
            shift, ratio, inside = (
                figures[:, 0].max(),
                figures[np.abs(np.log(figures[:, 1])).argmax(), 1],
                figures[:, 2],
            )
            worst = inside[np.abs(inside - LEVEL).argmax()]
            lines.append(f"| {pair[0]:g} and {pair[1]:g} | {stddev} | {shift:.2f} | {ratio:.2f} | {worst:.3f} |")
    return lines


def _beside(value: Table, truth: Table, approximate: Table) -> tuple[float, float, float]:
    """Shift of the mean, ratio of the standard deviations, exact probability of the approximate interval."""
    means, spreads = [], []
    for weights in (truth, approximate):
        means.append(value @ weights)
        spreads.append(np.sqrt(value**2 @ weights - means[-1] ** 2))
    order = np.argsort(value)
    below, own = np.cumsum(truth[order], 0), np.cumsum(approximate[order], 0)
    low, high = (own < (1 - LEVEL) / 2).sum(0), np.minimum((own < (1 + LEVEL) / 2).sum(0), len(value) - 1)
    column = np.arange(truth.shape[1])
    mass = below[high, column] - np.where(low > 0, below[low - 1, column], 0)
    shift = np.abs((means[1] - means[0]) / spreads[0]).mean()
    return float(shift), float(np.median(spreads[1] / spreads[0])), float(mass.mean())


def main() -> None:
    random = np.random.default_rng(0)
    results = {(m, s): compared(m, s, random) for m in EXPECTED for s in NOISE}
    for name in METHODS:
        print(f"\n{name}: shift of the mean in sd / ratio of sd / exact probability of the 95 % interval\n")
        print("| expected count | " + " | ".join(f"σ = {s}" for s in NOISE) + " |")
        print("| --- |" + " --- |" * len(NOISE))
        for m in EXPECTED:
            cells = (results[m, s][name] for s in NOISE)
            print(f"| {m} | " + " | ".join(f"{c.mean:.2f} / {c.spread:.2f} / {c.inside:.3f}" for c in cells) + " |")
    print("\nCoverage of the true expected count, normal approximation as it is (exact posterior)\n")
    for m in EXPECTED:
        cells = (results[m, s]["as it is"] for s in NOISE)
        print(f"| {m} | " + " | ".join(f"{c.covered:.3f} ({c.covered_exactly:.3f})" for c in cells) + " |")
    print("\nThree levels, as it is, the worse of the two rare cells\n")
    print("| expected counts | σ | shift of the mean in sd | ratio of sd | exact probability of the 95 % interval |")
    print("| --- | --- | --- | --- | --- |")
    print("\n".join(of_two()))


if __name__ == "__main__":
    main()
