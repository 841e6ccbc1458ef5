"""Edges at quantiles, bought: what they cost, that they are made of noise alone, and that the counts are exact."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noise_twins import NoNoise, Twin
from noisewise import Budget, Workload, synthesize
from noisewise.artifacts import Release, damage
from noisewise.confidential.counts import count
from noisewise.errors import BudgetError, WorkloadError
from noisewise.privacy.edges import in_bins
from noisewise.privacy.ledger import Ledger
from noisewise.privacy.measure import measure, measure_with_insecure_noise_for_tests
from noisewise.privacy.spanning import Mst
from noisewise.privacy.statement import loss_of
from noisewise.schema import Schema
from small_release import posterior_by_hand

TEXT = """
name = "wages"
[[column]]
name = "wage"
type = "numeric"
edges = "quantiles"
bins = 5
grid = { from = 0, to = 200, step = 2 }
integer = true
beyond = "end-bins"
missing = "category"
codes = ["N"]
codes_as = "text"
released_as = "uniform"
share = 0.1
[[column]]
name = "hours"
type = "numeric"
edges = "quantiles"
bins = 3
grid = [0, 10, 20, 30, 35, 40, 50, 60, 100]
closed = "right"
[[column]]
name = "sex"
type = "boolean"
"""
SCHEMA = Schema.from_toml(TEXT)
WORKLOAD = Workload.of(SCHEMA, [["wage", "sex"], ["wage", "hours"]])
ROWS = 4_000


def table(rows=ROWS, seed=0, scale=40.0):
    random = np.random.default_rng(seed)
    wage = [str(int(w)) for w in random.exponential(scale, rows)]
    wage[:3] = ["N", None, "900"]
    return pa.table({"wage": wage, "hours": random.uniform(0, 100, rows), "sex": random.random(rows) < 0.5})


def measured(data=None, schema=SCHEMA, workload=WORKLOAD, epsilon=1.0, noise=None, **options):
    data = table() if data is None else data
    noise = noise or NoNoise()
    return measure_with_insecure_noise_for_tests(data, schema, workload, Budget(epsilon), noise=noise, **options)


def test_without_noise_the_edges_are_the_quantiles_and_the_counts_those_of_their_bins():
    counts = measured()
    edges = counts.schema.column("wage").edges
    wages = np.array([float(w) for w in table()["wage"].to_pylist() if w not in ("N", None)])
    shares = np.histogram(np.minimum(wages, 200), edges)[0] / len(wages)

    # Edges lie on a grid of steps of 2; within one step lie at most 5 % of these wages, so shares are that near to 1/5.
    assert len(edges) == 6
    assert abs(shares - 0.2).max() < 0.05
    direct = count(table(), counts.schema, WORKLOAD.marginals)
    for measurement in counts.measurements:
        assert (measurement.values == direct.tables[measurement.marginal]).all()


def test_the_purchase_is_counted_in_statement_ledger_and_release(tmp_path):
    ledger = Ledger(tmp_path / "ledger", "people")
    counts = measure(table(), SCHEMA, WORKLOAD, Budget(1.0), ledger)
    steps = counts.privacy.steps

    assert [(step.name, round(step.share, 9), step.kept) for step in steps] == [
        ("edges", 0.15, False),
        ("measure", 0.85, True),
    ]
    assert [len(step.stddevs) for step in steps] == [2, 2]
    # Squared distances are shared out: the edges' act costs 0.15 of the whole ρ; σ is rounded up at the sixth digit.
    assert math.isclose(steps[0].rho / counts.privacy.rho, 0.15, rel_tol=1e-5)
    assert "wage (100 cells), hours (8 cells)" in steps[0].detail
    assert loss_of(counts.privacy).epsilon(counts.privacy.delta) <= 1.0

    again = measure(table(), SCHEMA, WORKLOAD, Budget(1.0), ledger)
    assert again.hash == counts.hash
    assert again.schema.column("wage").edges == counts.schema.column("wage").edges

    release = Release(tmp_path / "release")
    release.write_noisy_counts(counts)
    release.write_posterior(posterior_by_hand(counts))
    assert damage(release) == []
    assert release.schema().hash == counts.schema.hash != SCHEMA.hash
    assert SCHEMA.became(release.schema())


class SameAnswer(Twin):
    """Noise that drowns everything: what comes back does not depend on the counts at all."""

    def gaussian(self, counts, stddev, squared_distance, rho):
        return np.random.default_rng(counts.size).integers(0, 1000, counts.shape)


def test_edges_are_a_function_of_the_noisy_counts_alone():
    first, second = (measured(table(scale=s), noise=SameAnswer()) for s in (20.0, 80.0))
    assert first.schema == second.schema
    # The twin, edges of the exact counts, tells the tables apart.
    assert measured(table(scale=20.0)).schema != measured(table(scale=80.0)).schema


def test_the_noise_is_told_that_one_row_moves_two_cells_of_each_histogram():
    """One row's wage moves one unit between two cells of the grid, in the histogram and in each marginal."""
    one, other = table(), table()
    changed = other["wage"].to_pylist()
    changed[10] = "199" if changed[10] != "199" else "0"
    other = other.set_column(0, "wage", pa.array(changed))
    grids = SCHEMA.on_grids
    before, after = (count(data, grids, (("wage",), ("wage", "sex"))).tables for data in (one, other))
    assert {int(((after[m] - before[m]) ** 2).sum()) for m in before} == {2}

    class Distances(NoNoise):
        def __init__(self):
            super().__init__()
            self.asked = []

        def gaussian(self, counts, stddev, squared_distance, rho):
            self.asked.append((counts.shape, squared_distance, math.isclose(rho, stddev**-2)))
            return super().gaussian(counts, stddev, squared_distance, rho)

    noise = Distances()
    measured(noise=noise)
    assert noise.asked[:2] == [((102,), 2, True), ((8,), 2, True)]
    assert {asked[1:] for asked in noise.asked} == {(2, True)}


def test_a_selection_works_on_bought_bins():
    counts = measured(workload=Workload.of(SCHEMA, [["wage", "sex"]]), select=Mst(share=0.2), noise=Twin(), epsilon=3.0)
    assert [(step.name, round(step.share, 9)) for step in counts.privacy.steps] == [
        ("edges", 0.15),
        ("select", 0.2),
        ("measure", 0.65),
    ]
    assert {name for marginal in counts.marginals for name in marginal} == set(SCHEMA.names)


def test_synthetic_rows_lie_in_the_bought_bins():
    drawn = synthesize(posterior_by_hand(measured(noise=Twin())), 2, 500)
    for data in drawn:
        texts = data["wage"].to_pylist()
        assert all(text is None or text == "N" or (text.isdigit() and 0 <= int(text) <= 200) for text in texts)
        assert {"N", None} & set(texts)


def test_shares_that_leave_nothing_are_refused():
    greedy = Schema.from_toml(TEXT.replace("share = 0.1", "share = 0.96"))
    with pytest.raises(BudgetError, match="leave nothing to measure with"):
        measured(schema=greedy)
    with pytest.raises(BudgetError, match="leave nothing to measure with"):
        measured(select=Mst(share=0.9), workload=Workload.of(SCHEMA, [["wage", "sex"]]))


def test_a_grid_too_fine_for_its_marginals_is_refused():
    fine = TEXT.replace("step = 2 }", "step = 0.02 }").replace("integer = true\n", "")
    fine = fine.replace("grid = [0, 10, 20, 30, 35, 40, 50, 60, 100]", "grid = { from = 0, to = 100, step = 0.05 }")
    with pytest.raises(WorkloadError, match=r"\['wage', 'hours'\] has 20,00"):
        measured(schema=Schema.from_toml(fine))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.lists(
        st.floats(-5, 25, allow_nan=False) | st.integers(-5, 25) | st.just("N") | st.none(), min_size=1, max_size=30
    ),
    st.sampled_from(["left", "right"]),
    st.integers(0, 2**32 - 1),
)
def test_counts_on_the_grid_added_up_are_those_of_the_bins(values, closed, seed):
    schema = Schema.from_toml(
        f"""
        [[column]]
        name = "x"
        type = "numeric"
        edges = "quantiles"
        bins = 4
        grid = [0, 1, 2.5, 7, 8, 13, 20]
        closed = "{closed}"
        codes = ["N"]
        beyond = "end-bins"
        missing = "category"
        """
    )
    data = pa.table({"x": pa.array([v if v in (None, "N") else f"{v:.3f}" for v in values], pa.string())})
    column = schema.column("x")
    settled = schema.with_edges({"x": column.edges_from(np.random.default_rng(seed).integers(-3, 9, 6))})

    on_grid = count(data, schema.on_grids, [("x",)]).tables
    assert (in_bins(on_grid, schema, settled)["x",] == count(data, settled, [("x",)]).tables["x",]).all()
