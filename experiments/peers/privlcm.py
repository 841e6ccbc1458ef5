"""PrivLCM: Bayesian latent classes on noisy two-way tables, by Markov chain Monte Carlo.

Every two-way table gets two-sided geometric noise, which is (ε, 0)-differentially private: replacing one row moves each
table by 2 in the 1-norm. The rows are modelled by a mixture of at most K classes within which columns are independent,
with stick-breaking weights. The sampler goes around four steps, many chains at a time: the classes of the rows, given
the full table; weights and class profiles, given the classes; the concentration; and the full table, given the cell
probabilities and the noisy tables, by integer moves that shift rows between two levels of one column, or change the
interaction of two or of three columns (the last leave all two-way tables as they are).

Source: Nixon, Barrientos, Reiter & Slavković (2022), A Latent Class Modeling Approach for Differentially Private
Synthetic Data for Contingency Tables. The sampler is our own, exact for the discrete noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pyarrow as pa
from scipy.special import gammaln

from experiments.task import Datasets, Method, Task
from noisewise.posterior.diagnostics import ess_bulk, rhat

MAX_CELLS = 5_000
SCALES = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
"""Mean sizes of the integer moves; one is drawn for every move of every chain."""
CONCENTRATION = (0.25, 0.25)
"""Shape and rate of the gamma prior of the stick-breaking concentration."""


@dataclass(frozen=True, kw_only=True)
class PrivLcm(Method):
    """Noisy two-way tables, posterior draws of a latent class model, a dataset from each of some draws."""

    name: str = "PrivLCM"  # type: ignore[misc]
    """How tables call it."""
    pooled: bool = True  # type: ignore[misc]
    """Its datasets are pooled."""
    m: int = 100
    """Number of datasets."""
    classes: int = 10
    """Largest number of latent classes."""
    chains: int = 50
    """Chains run side by side."""
    draws: int = 10
    """Draws kept of each chain; 500 in all, as published."""
    warm_up: int = 1000
    """Rounds before the first draw; during the first half the noise is exaggerated and brought down to its size."""
    thinning: int = 40
    """Rounds from one draw to the next."""

    def datasets(self, task: Task) -> Sequence[pa.Table]:
        tables = tuple(combinations(task.schema.names, 2))
        decay = np.exp(-task.epsilon / (2 * len(tables)))
        noisy = [two_sided_geometric(task.confidential.counts(t), decay, task.generator("noise")) for t in tables]
        sampler = Sampler(
            sizes=task.schema.sizes,
            tables=tuple(tuple(task.schema.index(name) for name in t) for t in tables),
            noisy=np.concatenate([table.reshape(-1) for table in noisy]),
            cost=-np.log(decay),
            rows=task.rows,
            settings=self,
        )
        probabilities = sampler.run(task.generator("fit"))
        chosen = task.generator("rows").permutation(self.chains * self.draws)[: self.m]
        flat = probabilities.reshape(-1, probabilities.shape[-1])
        numbers = {"rhat": float(rhat(probabilities).max()), "ess": float(ess_bulk(probabilities).min())}
        return Datasets((_rows(task, flat[draw], number) for number, draw in enumerate(chosen)), numbers=numbers)


def _rows(task: Task, probabilities: np.ndarray, number: int) -> pa.Table:
    """Independent rows with these cell probabilities."""
    cells = task.generator("rows", 1 + number).choice(len(probabilities), size=task.rows, p=probabilities)
    return task.schema.decode(np.stack(np.unravel_index(cells, task.schema.sizes), axis=1))


def two_sided_geometric(counts: np.ndarray, decay: float, generator: np.random.Generator) -> np.ndarray:
    """Add noise with P(k) proportional to decay^|k|: the difference of two geometric numbers."""
    first, second = (generator.geometric(1 - decay, size=counts.shape) for _ in range(2))
    return counts + first - second


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler:
    """The posterior of the cell probabilities, given noisy two-way tables."""

    sizes: tuple[int, ...]
    """Number of levels of each column."""
    tables: tuple[tuple[int, ...], ...]
    """The measured tables, as column positions."""
    noisy: np.ndarray
    """Their noisy counts, one after the other."""
    cost: float
    """Loss in log likelihood by each unit of difference between a noisy and a true count."""
    rows: int
    """Number of rows."""
    settings: PrivLcm
    """Numbers of classes, chains, draws and rounds."""

    def run(self, generator: np.random.Generator) -> np.ndarray:
        """Cell probabilities, (chains, draws, cells)."""
        if np.prod(self.sizes, dtype=float) > MAX_CELLS:
            raise ValueError(f"PrivLCM keeps the full table; this one has more than {MAX_CELLS:,} cells.")
        s, cells = self.settings, np.array(list(product(*map(range, self.sizes))))
        membership, moves = self._membership(cells), integer_moves(self.sizes)
        table = generator.multinomial(self.rows, np.full(len(cells), 1 / len(cells)), size=s.chains)
        weights = np.full((s.chains, s.classes), 1 / s.classes)
        profiles = [generator.dirichlet(np.ones(size), size=(s.chains, s.classes)) for size in self.sizes]
        concentration = np.ones(s.chains)
        kept = []
        for round_number in range(s.warm_up + s.draws * s.thinning):
            joint = _class_tables(weights, profiles, cells)
            by_class = _classes(table, joint, generator)
            weights = _weights(by_class.sum(axis=1), concentration, generator)
            shape, rate = CONCENTRATION
            concentration = generator.gamma(shape + s.classes - 1, 1 / (rate - np.log(weights[:, -1])))
            profiles = [_profiles(by_class, cells[:, j], size, generator) for j, size in enumerate(self.sizes)]
            probabilities = _class_tables(weights, profiles, cells).sum(axis=2)
            exaggerated = max(0.0, 1 - 2 * round_number / s.warm_up)
            cost = self.cost * (0.01 / max(self.cost, 0.01)) ** exaggerated
            self._move(table, np.log(probabilities), membership, moves, cost, generator)
            if round_number >= s.warm_up and (round_number - s.warm_up) % s.thinning == s.thinning - 1:
                kept.append(probabilities / probabilities.sum(axis=1, keepdims=True))
        return np.stack(kept, axis=1)

    def _membership(self, cells: np.ndarray) -> np.ndarray:
        """Which table cell each cell of the full table counts in: 1 or 0, (cells, table cells)."""
        parts = []
        for table in self.tables:
            shape = [self.sizes[column] for column in table]
            where = np.ravel_multi_index([cells[:, column] for column in table], shape)
            parts.append(np.eye(int(np.prod(shape)), dtype=np.int64)[where])
        return np.concatenate(parts, axis=1)

    def _move(
        self,
        table: np.ndarray,
        log_probabilities: np.ndarray,
        membership: np.ndarray,
        moves: list[tuple[np.ndarray, np.ndarray]],
        cost: float,
        generator: np.random.Generator,
    ) -> None:
        """Try every move once in every chain; `table` is changed in place."""
        chains = len(table)
        residual = table @ membership - self.noisy
        for number in generator.permutation(len(moves)):
            where, signs = moves[number]
            size = np.ceil(generator.exponential(SCALES[generator.integers(len(SCALES), size=chains)])).astype(int)
            step = size * generator.choice([-1, 1], size=chains)
            before = table[:, where]
            after = before + step[:, None] * signs
            change = signs @ membership[where]
            touched = np.flatnonzero(change)
            moved = residual[:, touched] + step[:, None] * change[touched]
            gain = step * (log_probabilities[:, where] @ signs) - cost * (
                np.abs(moved).sum(axis=1) - np.abs(residual[:, touched]).sum(axis=1)
            )
            possible = (after >= 0).all(axis=1)
            gain += (gammaln(before + 1) - gammaln(np.maximum(after, 0) + 1)).sum(axis=1)
            accepted = np.flatnonzero(possible & (np.log(generator.random(chains)) < gain))
            table[np.ix_(accepted, where)] = after[accepted]
            residual[np.ix_(accepted, touched)] = moved[accepted]


def integer_moves(sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cells and signs of all moves between two levels of one, two or three columns, the other columns fixed."""
    moves = []
    for order in range(1, min(3, len(sizes)) + 1):
        for changed in combinations(range(len(sizes)), order):
            pairs = [list(combinations(range(sizes[column]), 2)) for column in changed]
            others = [range(1) if column in changed else range(size) for column, size in enumerate(sizes)]
            for levels, fixed in product(product(*pairs), product(*others)):
                corners = list(product((0, 1), repeat=order))
                cells = np.array([fixed] * len(corners))
                for position, column in enumerate(changed):
                    cells[:, column] = [levels[position][corner[position]] for corner in corners]
                signs = np.array([(-1) ** sum(corner) for corner in corners])
                moves.append((np.ravel_multi_index(tuple(cells.T), sizes), signs))
    return moves


def _class_tables(weights: np.ndarray, profiles: list[np.ndarray], cells: np.ndarray) -> np.ndarray:
    """Probability of each cell and class together, (chains, cells, classes)."""
    joint = np.broadcast_to(weights[:, None, :], (len(weights), len(cells), weights.shape[1])).copy()
    for column, profile in enumerate(profiles):
        joint *= profile[:, :, cells[:, column]].transpose(0, 2, 1)
    return np.maximum(joint, 1e-300)


def _classes(table: np.ndarray, joint: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """How many of each cell's rows belong to each class, (chains, cells, classes)."""
    shares = joint / joint.sum(axis=2, keepdims=True)
    shares[..., -1] = np.maximum(0, 1 - shares[..., :-1].sum(axis=2))  # the generator wants sums of at most 1
    return generator.multinomial(table, shares)


def _weights(totals: np.ndarray, concentration: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Stick-breaking weights given the number of rows in each class."""
    later = totals.sum(axis=1, keepdims=True) - totals.cumsum(axis=1)
    broken = generator.beta(1 + totals[:, :-1], np.maximum(concentration[:, None], 1e-3) + later[:, :-1])
    left = np.concatenate([np.ones((len(totals), 1)), np.cumprod(1 - broken, axis=1)], axis=1)
    broken = np.concatenate([broken, np.ones((len(totals), 1))], axis=1)
    return np.maximum(left * broken, 1e-12)


def _profiles(by_class: np.ndarray, levels: np.ndarray, size: int, generator: np.random.Generator) -> np.ndarray:
    """One column's distribution within each class, given how many of its rows have each level."""
    counts = np.stack([by_class[:, levels == level].sum(axis=1) for level in range(size)], axis=2)
    drawn = generator.gamma(counts + 1.0)
    return drawn / drawn.sum(axis=2, keepdims=True)
