"""Private selection of marginals: sensitivity by brute force, chances against an oracle, the promise by enumeration."""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from noise_twins import NoNoise, Twin
from noisewise import Budget, Ledger, Mst, Schema, Workload, fit, measure
from noisewise.errors import BudgetError, ModelError, StudyError
from noisewise.model.junction_tree import junction_tree
from noisewise.noisy_counts import Measurement
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.allowance import Allowance
from noisewise.privacy.forest import Forest
from noisewise.privacy.measure import measure_with_insecure_noise_for_tests
from noisewise.privacy.selection import Chances, distance, expected_if_independent
from noisewise.privacy.selections import selection
from noisewise.privacy.statement import loss_of
from noisewise.schema import Categorical
from oracles.privacy_loss import marginal_counts, records
from oracles.spanning_trees import independent, pair_score, tree_chances

ALPHA = 1e-9
SIZES = (3, 2, 2, 3)
NOTHING = Workload(marginals=())


def schema_of(sizes=SIZES):
    return Schema(
        column=tuple(
            Categorical(name=name, levels=tuple(map(str, range(size))))
            for name, size in zip("abcdefghij", sizes, strict=False)
        )
    )


def chain_table(rows=4000, seed=0, sizes=(3, 3, 3, 3, 3)):
    """Each column repeats the one before, seven times in ten."""
    random = np.random.default_rng(seed)
    columns = [random.integers(0, sizes[0], rows)]
    for size in sizes[1:]:
        columns.append(np.where(random.random(rows) < 0.7, columns[-1] % size, random.integers(0, size, rows)))
    return pa.table({name: [str(v) for v in column] for name, column in zip("abcdefghij", columns, strict=False)})


def chosen_pairs(noisy):
    return {m for m in noisy.marginals if len(m) == 2}


# What a replaced row can do to a score


def largest_move(score, rows=1, tables=40, seed=0):
    """The largest change of a score over every pair of records put into one place of many tables, and every pair."""
    random = np.random.default_rng(seed)
    every, largest = records(SIZES), 0
    for _ in range(tables):
        rest = [every[i] for i in random.integers(0, len(every), 7)]
        one_way = [random.integers(-2, 9, size) for size in SIZES]
        for pair in combinations(range(len(SIZES)), 2):
            changed = {(one,) * rows: score([*rest, *(one,) * rows], pair, one_way) for one in every}
            largest = max(largest, max(changed.values()) - min(changed.values()))
    return largest


def our_score(table, pair, one_way):
    """The score of the code, on given noisy one-way counts."""
    names = "abcd"
    measured = {(names[i],): Measurement(marginal=(names[i],), values=v, stddev=1.0) for i, v in enumerate(one_way)}
    expected = expected_if_independent(measured, tuple(names[i] for i in pair), len(table))
    return distance(marginal_counts(table, SIZES, pair), expected)


def score_from_exact_one_way_counts(table, pair, one_way):
    """A twin: independence judged by the exact counts, which move with the row too."""
    exact = [marginal_counts(table, SIZES, (column,)) for column in range(len(SIZES))]
    return our_score(table, pair, exact)


def squared_score(table, pair, one_way):
    """A twin: the squared distance, which moves by as much as the distance is."""
    expected = independent(one_way, pair, len(table))
    return int(((marginal_counts(table, SIZES, pair) - expected) ** 2).sum())


def test_a_replaced_unit_moves_a_score_by_two_for_each_row_and_no_more():
    assert largest_move(our_score) == 2
    assert largest_move(our_score, rows=3, tables=10) == 6


@pytest.mark.parametrize("twin", [score_from_exact_one_way_counts, squared_score], ids=lambda f: f.__name__)
def test_the_test_rejects_scores_that_move_further(twin):
    assert largest_move(twin, tables=10) > 2


def test_the_score_is_what_the_oracle_counts():
    random = np.random.default_rng(3)
    every = records(SIZES)
    for _ in range(20):
        table = [every[i] for i in random.integers(0, len(every), 9)]
        one_way = [random.integers(-3, 9, size) for size in SIZES]
        for pair in combinations(range(len(SIZES)), 2):
            expected = independent(one_way, pair, len(table))
            assert our_score(table, pair, one_way) == pair_score(table, SIZES, pair, expected)


class Watching(NoNoise):
    """Writes down what a choice is told."""

    def __init__(self):
        super().__init__()
        self.told = []

    def choose(self, scores, sensitivity, epsilon):
        self.told.append((sensitivity, epsilon))
        return super().choose(scores, sensitivity, epsilon)


@pytest.mark.parametrize("rows", [1, 3])
def test_every_choice_is_told_the_largest_move(rows):
    watching = Watching()
    data = chain_table(600).append_column("person", pa.array(np.arange(600) // rows))
    noisy = measure_with_insecure_noise_for_tests(
        data, schema_of((3,) * 5), NOTHING, Budget(1.0), unit="person", max_rows_per_unit=rows, select=Mst(),
        noise=watching,
    )  # fmt: skip

    assert [told[0] for told in watching.told] == [2 * rows] * 4
    assert tuple(told[1] for told in watching.told) == noisy.privacy.steps[0].rounds


# The promise itself


def neighbours_and_scores(one_way, rows=6, seed=0):
    random = np.random.default_rng(seed)
    every = records(SIZES)
    base = [every[i] for i in random.integers(0, len(every), rows)]
    for first, second in product(every, every):
        tables = [[*base, first], [*base, second]]
        yield [
            {
                pair: pair_score(table, SIZES, pair, independent(one_way, pair, rows + 1))
                for pair in combinations(range(len(SIZES)), 2)
            }
            for table in tables
        ]


def worst_delta(epsilon, cost, sensitivity, one_way, every=11):
    worst = 0.0
    for number, (one, other) in enumerate(neighbours_and_scores(one_way)):
        if number % every:
            continue
        p, q = (tree_chances(scores, range(len(SIZES)), cost, sensitivity) for scores in (one, other))
        worst = max(worst, sum(max(0.0, p[tree] - math.exp(epsilon) * q[tree]) for tree in p))
    return worst


def test_choosing_a_whole_tree_keeps_the_promise_and_half_the_sensitivity_breaks_it():
    """δ(ε) over all trees, exactly, for neighbours: below what the accounting says; above it with sensitivity 1."""
    one_way = [np.array([3, 2, 2]), np.array([4, 3]), np.array([5, 2]), np.array([1, 3, 3])]
    promised = PrivacyLoss(rounds=(1.0,) * 3)
    for epsilon in (0.5, 1.0):
        assert worst_delta(epsilon, 1.0, 2, one_way) <= promised.delta(epsilon)
        assert worst_delta(epsilon, 1.0, 1, one_way) > promised.delta(epsilon)


def tree_frequencies(source, times, cost, tied=()):
    """How often each tree is chosen by the code, with one-way counts that carry no noise."""
    schema, names = schema_of(), "abcd"
    random = np.random.default_rng(5)
    every = records(SIZES)
    table = [every[i] for i in random.integers(0, len(every), 12)]
    tables = {
        tuple(names[c] for c in m): marginal_counts(table, SIZES, m)
        for m in [*((c,) for c in range(4)), *combinations(range(4), 2)]
    }
    required = tuple(Measurement(marginal=m, values=tables[m], stddev=1.0) for m in tied)
    choices = Mst().choices(schema, tied)
    found = {}
    for _ in range(times):
        chances = Chances(
            tables=tables,
            schema=schema,
            rows=len(table),
            first=PrivacyLoss(stddevs=(1.0,) * 4, rounds=(cost,) * choices),
            measuring=(1.0,) * choices,
            noise=source,
        )
        tree = frozenset(m.marginal for m in Mst().choose(schema, required, chances).marginals)
        found[tree] = found.get(tree, 0) + 1
    one_way = [tables[(name,)] for name in names]
    scores = {p: pair_score(table, SIZES, p, independent(one_way, p, len(table))) for p in combinations(range(4), 2)}
    positions = [tuple(names.index(n) for n in m) for m in tied]
    wanted = {}
    for sequence, chance in tree_chances(scores, range(4), cost, 2, positions).items():
        tree = frozenset(tuple(names[c] for c in pair) for pair in sequence)
        wanted[tree] = wanted.get(tree, 0.0) + chance
    return found, wanted


def tree_p_value(found, wanted):
    times = sum(found.values())
    common = [tree for tree, chance in wanted.items() if times * chance >= 10]
    cells = [(found.get(tree, 0), times * wanted[tree]) for tree in common]
    rest = (times - sum(o for o, _ in cells), times - sum(e for _, e in cells))
    cells += [rest] if rest[1] >= 5 else []
    return chi2.sf(sum((o - e) ** 2 / e for o, e in cells), len(cells) - 1)


class OnlyChoices(Twin):
    """No noise on counts, choices as they should be; or with too small a sensitivity."""

    def __init__(self, halved=False, seed=0):
        super().__init__(lambda generator, stddev, size: np.zeros(size, np.int64), seed)
        self.halved = halved

    def choose(self, scores, sensitivity, epsilon):
        return super().choose(scores, sensitivity / 2 if self.halved else sensitivity, epsilon)


@pytest.mark.parametrize("tied", [(), (("a", "c"),)])
def test_trees_are_chosen_with_the_oracles_chances(tied):
    found, wanted = tree_frequencies(OnlyChoices(), 1000, 2.0, tied)

    assert tree_p_value(found, wanted) > ALPHA
    broken, _ = tree_frequencies(OnlyChoices(halved=True, seed=1), 1000, 2.0, tied)
    assert tree_p_value(broken, wanted) < ALPHA


# What it finds


def test_a_chain_is_found_and_everything_it_measured_is_kept():
    noisy = measure(chain_table(), schema_of((3,) * 5), NOTHING, Budget(1.0), select=Mst())

    assert noisy.marginals[:5] == tuple((name,) for name in "abcde")
    assert chosen_pairs(noisy) == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")}
    select, step = noisy.privacy.steps
    assert (select.name, select.share, step.name, step.share) == ("select", 0.1, "measure", 0.9)
    assert (len(select.rounds), len(select.stddevs), len(step.stddevs)) == (4, 5, 4)
    assert tuple(m.stddev for m in noisy.measurements) == (*select.stddevs, *step.stddevs)
    assert loss_of(noisy.privacy).delta(1.0) <= noisy.privacy.delta
    assert noisy.privacy.epsilon <= 1.0


def test_the_one_way_counts_of_the_selection_enter_the_posterior():
    noisy = measure(chain_table(800), schema_of((3,) * 3), NOTHING, Budget(1.0), select=Mst(columns=("a", "b", "c")))
    posterior = fit(noisy)

    assert posterior.noisy_counts.marginals[:3] == (("a",), ("b",), ("c",))
    assert posterior.verdict.summary


def test_required_marginals_stay_and_the_tree_grows_around_them():
    required = Workload.of(schema_of((3,) * 5), [["a", "e"], ["b", "c"]])
    noisy = measure(chain_table(), schema_of((3,) * 5), required, Budget(2.0), select=Mst())

    assert {("a", "e"), ("b", "c")} < chosen_pairs(noisy)
    assert len(chosen_pairs(noisy)) == 4  # a tree over five columns
    assert junction_tree((3,) * 5, [tuple("abcde".index(c) for c in m) for m in noisy.marginals]).cells == 4 * 9


def test_a_selection_with_nothing_to_choose_costs_nothing():
    required = Workload.of(schema_of((3, 3)), [["a", "b"]])
    noisy = measure(chain_table(sizes=(3, 3)), schema_of((3, 3)), required, Budget(1.0), select=Mst())

    assert [step.name for step in noisy.privacy.steps] == ["measure"]
    assert noisy.marginals == (("a", "b"),)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=8),
    required=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 7)), max_size=3),
    ruled=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=2),
    spare=st.integers(0, 60),
    seed=st.integers(0, 10**6),
)
def test_the_limit_on_cells_is_kept_whatever_is_chosen_and_the_number_of_choices_never_changes(
    sizes, required, ruled, spare, seed
):
    schema = schema_of(sizes)
    names = schema.names
    rules = {tuple(sorted({i % len(sizes) for i in pair})) for pair in ruled}
    rules = [rule for rule in rules if len(rule) == 2 and all(sizes[i] > 1 for i in rule)]
    schema = Schema(column=schema.columns, rule=[{"impossible": {names[i]: "0" for i in rule}} for rule in rules])
    marginals = {tuple(sorted({i % len(sizes) for i in m})) for m in required}
    given_ = tuple(tuple(names[i] for i in m) for m in marginals if not any(set(m) < set(o) for o in marginals))
    cheapest = 1
    while True:  # the smallest limit that is accepted
        try:
            choices = Mst(max_cells=cheapest).choices(schema, given_)
            break
        except ModelError as error:
            cheapest = int(str(error).split(" cells")[0].split()[-1].replace(",", ""))
    rule, random = Mst(max_cells=cheapest + spare), np.random.default_rng(seed)
    offered = rule.candidates(schema, given_)

    class AnyChoice(NoNoise):
        def choose(self, scores, sensitivity, epsilon):
            return int(random.integers(len(scores)))

    tables = {m: np.zeros(schema.shape(m), np.int64) for m in [*((n,) for n in names), *offered]}
    chances = Chances(
        tables=tables,
        schema=schema,
        rows=10,
        first=PrivacyLoss(stddevs=(1.0,) * len(names), rounds=(1.0,) * choices),
        measuring=(1.0,) * choices,
        noise=AnyChoice(),
    )
    kept = tuple(Measurement(marginal=m, values=np.zeros(schema.shape(m), np.int64), stddev=1.0) for m in given_)
    found = rule.choose(schema, kept, chances)
    everything = [*(tuple(names.index(n) for n in m.marginal) for m in (*kept, *found.marginals)), *rules]

    assert len(found.marginals) == choices
    assert (
        list(Forest.of(schema, names, tuple(m.marginal for m in (*kept, *found.marginals)), 10**9).admissible()) == []
    )
    assert junction_tree(schema.sizes, everything).cells <= cheapest + spare


def test_a_limit_that_cannot_be_kept_is_told_before_anything_is_spent(tmp_path):
    ledger = Ledger(tmp_path / "l", "people")
    with pytest.raises(ModelError, match=r"36 cells, more than max_cells = 30.*Nothing was measured"):
        measure(chain_table(), schema_of((3,) * 5), NOTHING, Budget(1.0), ledger, select=Mst(max_cells=30))
    assert not (tmp_path / "l").exists()


def test_large_pairs_are_not_even_counted():
    wide = Schema(column=(*schema_of((2, 2)).columns, *(Categorical(name=n, levels=tuple(range(999))) for n in "xy")))

    assert ("x", "y") not in Mst().candidates(wide, ())
    assert ("a", "x") in Mst().candidates(wide, ())


# Guards


def test_the_ledger_knows_the_selection_and_gives_it_out_again(tmp_path):
    ledger = Ledger(tmp_path / "l", "people")
    first = measure(chain_table(), schema_of((3,) * 5), NOTHING, Budget(0.2), ledger, select=Mst(share=0.2))
    again = measure(chain_table(), schema_of((3,) * 5), NOTHING, Budget(0.2), ledger, select=Mst(share=0.2))
    debit = next(entry.content for entry in ledger.entries() if entry.kind == "debited")

    assert first.hash == again.hash
    assert first.privacy == again.privacy
    assert debit["asked"]["select"]["method"] == "mst"
    assert debit["asked"]["select"]["share"] == 0.2
    assert (len(debit["stddevs"]), len(debit["rounds"])) == (9, 4)
    with pytest.raises(BudgetError, match="refuses"):
        measure(chain_table(), schema_of((3,) * 5), NOTHING, Budget(0.2), ledger, select=Mst(share=0.3))


def test_nothing_is_drawn_that_was_not_planned_and_nothing_twice():
    counts = np.zeros(3, np.int64)
    allowance = Allowance(PrivacyLoss(stddevs=(2.0, 3.0), rounds=(0.5,)), NoNoise())
    allowance.gaussian(counts, 2.0, 2, 1 / 4)
    for act in (
        lambda: allowance.gaussian(counts, 2.0, 2, 1 / 4),
        lambda: allowance.gaussian(counts, 3.0, 1, 1 / 9),
        lambda: allowance.gaussian(counts, 2.9, 2, (1 / 2.9) ** 2),
        lambda: allowance.choose(counts, 1, 0.5),
        lambda: allowance.choose(counts, 2, 0.4),
        allowance.refuse_leftovers,
    ):
        with pytest.raises(BudgetError, match="planned"):
            act()
    allowance.gaussian(counts, 3.0, 2, (1 / 3.0) ** 2)
    allowance.choose(counts, 2, 0.5)
    allowance.refuse_leftovers()


def test_settings_that_make_no_sense_are_refused():
    for share in (0.0, 1.0, math.nan, -0.1):
        with pytest.raises(BudgetError, match="between 0 and 1"):
            Mst(share=share)
    with pytest.raises(BudgetError, match="at least one cell"):
        replace(Mst(), max_cells=0)
    with pytest.raises(StudyError, match="Did you mean 'mst'"):
        selection("mts")
    with pytest.raises(StudyError, match="no setting 'shares'"):
        selection("mst", shares=0.1)
