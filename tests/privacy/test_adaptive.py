"""Adaptive selection: its estimate against an oracle, its sensitivity, its size limit, and what it finds."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

from noise_twins import NoNoise, Twin
from noisewise import Adaptive, Budget, Schema, Workload, measure
from noisewise.errors import BudgetError, ModelError
from noisewise.model.estimate import PointEstimate, Seen
from noisewise.model.junction_tree import junction_tree
from noisewise.privacy.adaptive import _expected
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.schema import Categorical

NOTHING = Workload(marginals=())
SCHEMA = Schema(column=tuple(Categorical(name=name, levels=("0", "1", "2")) for name in "abcde"))


def ring(rows=3000, seed=0):
    """a - b - c - d - a go together in a ring; e is on its own."""
    random = np.random.default_rng(seed)

    def like(column, share):
        return np.where(random.random(rows) < share, column, random.integers(0, 3, rows))

    a = random.integers(0, 3, rows)
    b = like(a, 0.6)
    c = like(b, 0.6)
    d = np.where(random.random(rows) < 0.5, like(c, 0.7), like(a, 0.7))
    columns = zip("abcde", (a, b, c, d, random.integers(0, 3, rows)), strict=True)
    return pa.table({name: [str(v) for v in column] for name, column in columns})


def measured(data=None, noise=None, **options):
    return measure_with_insecure_noise_for_tests(
        ring() if data is None else data, SCHEMA, options.pop("workload", NOTHING), Budget(1.0), noise=noise or Twin(),
        **options,
    )  # fmt: skip


def test_a_ring_is_found_and_everything_is_kept_and_counted():
    noisy = measure(ring(), SCHEMA, NOTHING, Budget(1.0), select=Adaptive(rounds=4))
    pairs = {m for m in noisy.marginals if len(m) == 2}

    assert len(noisy.measurements) == 5 + 4
    assert len(pairs & {("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")}) >= 3
    assert not any("e" in pair for pair in pairs)
    select, step = noisy.privacy.steps
    assert (len(select.stddevs), len(select.rounds), len(step.stddevs)) == (5, 4, 4)
    assert tuple(m.stddev for m in noisy.measurements) == (*select.stddevs, *step.stddevs)


def test_what_it_expects_depends_on_noisy_counts_alone():
    """The exact table may be any other: with the noisy counts fixed, every score's reference is the same."""

    class Fixed(NoNoise):
        def __init__(self):
            super().__init__()
            self.asked = []

        def gaussian(self, counts, stddev, squared_distance, rho):
            return np.full(counts.shape, 3000 // counts.size, np.int64)

        def choose(self, scores, sensitivity, epsilon):
            self.asked.append((len(scores), sensitivity, epsilon))
            return 7

    sources = Fixed(), Fixed()
    one, other = (measured(ring(seed=s), noise, select=Adaptive(rounds=3)) for s, noise in enumerate(sources))

    assert one.marginals == other.marginals
    assert sources[0].asked == sources[1].asked
    assert {sensitivity for _, sensitivity, _ in sources[0].asked} == {2}


def test_replacing_a_row_moves_every_score_by_two_at_the_most():
    """Through `measure` itself, with the noise fixed: the scores that reach the mechanism are compared."""

    class Watching(NoNoise):
        def __init__(self):
            super().__init__()
            self.scores = []

        def gaussian(self, counts, stddev, squared_distance, rho):
            return np.full(counts.shape, 60 // counts.size, np.int64)

        def choose(self, scores, sensitivity, epsilon):
            self.scores.append(scores)
            return 6

    random, base, largest = np.random.default_rng(1), ring(60), 0
    watched = Watching()
    measured(base, watched, select=Adaptive(rounds=2))
    for _ in range(6):
        row = {name: str(random.integers(0, 3)) for name in "abcde"}
        changed = pa.concat_tables([base.slice(1), pa.Table.from_pylist([row], schema=base.schema)])
        also = Watching()
        measured(changed, also, select=Adaptive(rounds=2))
        moves = [int(np.abs(x - y).max()) for x, y in zip(watched.scores, also.scores, strict=True)]
        largest = max(largest, *moves)
    assert largest == 2


@pytest.mark.parametrize("limit", [30, 45, 10**6])
def test_the_limit_on_cells_is_kept_and_the_rounds_are_always_made(limit):
    noisy = measured(noise=NoNoise(), select=Adaptive(rounds=6, max_cells=limit))
    positions = [tuple("abcde".index(n) for n in m) for m in noisy.marginals]

    assert len(noisy.measurements) == 5 + 6
    assert junction_tree((3,) * 5, positions).cells <= limit


def test_required_marginals_that_are_too_large_are_told_before_anything_is_spent():
    required = Workload.of(SCHEMA, [["a", "b", "c"]])
    with pytest.raises(ModelError, match="33 cells, more than max_cells = 30"):
        measured(workload=required, select=Adaptive(max_cells=30))
    with pytest.raises(BudgetError, match="at least one choice"):
        Adaptive(rounds=0)


def test_the_estimate_minimises_its_loss():
    """Against a general optimiser on all 27 cells of three columns."""
    random = np.random.default_rng(0)
    truth = random.dirichlet(np.ones(27)).reshape(3, 3, 3) * 500
    seen = [
        Seen(columns=(0, 1), counts=truth.sum(2) + random.normal(0, 5, (3, 3)), stddev=5.0),
        Seen(columns=(1, 2), counts=truth.sum(0) + random.normal(0, 9, (3, 3)), stddev=9.0),
        Seen(columns=(0, 2), counts=truth.sum(1) + random.normal(0, 7, (3, 3)), stddev=7.0),
    ]

    def loss(logits):
        table = np.exp(logits - logits.max()).reshape(3, 3, 3)
        table = 500 * table / table.sum()
        sums = (table.sum(2), table.sum(0), table.sum(1))
        return sum(((s - one.counts) ** 2).sum() / (2 * one.stddev**2) for s, one in zip(sums, seen, strict=True))

    best = min(minimize(loss, random.normal(0, 0.1, 27), method="BFGS").fun for _ in range(2))
    ours = PointEstimate.of((3, 3, 3), seen, 500)

    assert loss(np.zeros(27)) > 10 * best
    assert ours.loss == pytest.approx(best, rel=0.02, abs=0.5)  # 0.5 is a likelihood ratio nobody would notice


def test_the_estimate_keeps_the_rules():
    schema = Schema(column=SCHEMA.columns, rule=[{"impossible": {"a": "0", "b": "0"}}])
    counts = np.full((3, 3), 100.0)
    seen = [Seen(columns=(0, 1), counts=counts, stddev=3.0)]
    drawn = PointEstimate.of(schema.sizes, seen, 900, schema.impossible).draw(20_000, seed=0)

    assert not ((drawn[:, 0] == 0) & (drawn[:, 1] == 0)).any()
    assert ((drawn[:, 0] == 1) & (drawn[:, 1] == 1)).mean() == pytest.approx(1 / 8, abs=0.02)


def test_what_is_expected_of_pairs_in_no_clique():
    """a - b and b - c are measured: of a and c it expects what follows from both."""
    data = ring(3000)
    noisy = measured(data, NoNoise(), workload=Workload.of(SCHEMA, [["a", "b"], ["b", "c"]]))
    expected = _expected(SCHEMA, noisy.measurements, noisy.rows).counts(("a", "c"))
    ab, bc = (m.values / 3000 for m in noisy.measurements)
    wanted = 3000 * ab @ (bc / bc.sum(1, keepdims=True))

    # 100 000 rows drawn: a cell of 1/9 has an error of 0.1 %, 3 counts; six of them, and 2 % for the estimate
    assert np.abs(expected - wanted).max() < 6 * 3 + 0.02 * wanted.max()
