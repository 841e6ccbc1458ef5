"""The private act as a whole: what noise is asked for, what is stated, and what is refused."""

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from noise_twins import NoNoise, Twin
from noisewise.confidential.counts import count
from noisewise.errors import BudgetError, DataError, NoisewiseError, SchemaError
from noisewise.privacy.accounting import PrivacyLoss
from noisewise.privacy.budget import Budget
from noisewise.privacy.measure import measure, measure_with_insecure_noise_for_tests
from noisewise.privacy.statement import loss_of
from noisewise.schema import Categorical, Schema
from noisewise.workload import Workload

SCHEMA = Schema(
    column=(
        Categorical(name="a", levels=("p", "q")),
        Categorical(name="b", levels=("r", "s", "t")),
        Categorical(name="c", levels=("u", "v"), missing="category"),
    )
)
WORKLOAD = Workload.of(SCHEMA, [["a", "b"], ["b", "c"]])


def table(rows=200, seed=0, **columns):
    random = np.random.default_rng(seed)
    drawn = {c.name: random.choice(c.declared_labels, rows) for c in SCHEMA.columns}
    return pa.table(drawn | columns)


class Recorder(NoNoise):
    """Writes down what it is asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def gaussian(self, counts, stddev, squared_distance, rho):
        self.asked.append((counts.shape, stddev, squared_distance, rho))
        return super().gaussian(counts, stddev, squared_distance, rho)


def test_the_statement_can_be_derived_again_from_the_noise():
    noisy = measure(table(), SCHEMA, WORKLOAD, Budget(1.0))
    loss = PrivacyLoss(stddevs=tuple(m.stddev for m in noisy.measurements))

    assert loss_of(noisy.privacy) == loss
    assert tuple(s for step in noisy.privacy.steps for s in step.stddevs) == loss.stddevs
    assert noisy.marginals == WORKLOAD.marginals
    assert noisy.privacy.delta == 1 / 200**2
    assert noisy.privacy.epsilon == min(1.0, loss.epsilon(noisy.privacy.delta))
    assert noisy.privacy.rho == loss.rho == math.fsum(step.rho for step in noisy.privacy.steps)
    assert noisy.privacy.neighbours == "substitute-one"
    assert "the number of rows" in noisy.privacy.unprotected_quantities


@pytest.mark.parametrize("rows_per_unit", [1, 2, 5])
def test_the_mechanism_is_told_how_far_neighbours_lie_apart(rows_per_unit):
    recorder = Recorder()
    units = {"person": np.arange(200) // rows_per_unit}
    noisy = measure_with_insecure_noise_for_tests(
        table(**units), SCHEMA, WORKLOAD, Budget(1.0), unit="person", max_rows_per_unit=rows_per_unit, noise=recorder
    )

    assert [asked[2] for asked in recorder.asked] == [2 * rows_per_unit**2] * 2
    assert math.fsum(asked[3] for asked in recorder.asked) == pytest.approx(noisy.privacy.rho)
    assert [asked[1] for asked in recorder.asked] == [m.stddev for m in noisy.measurements]
    assert noisy.privacy.max_rows_per_unit == rows_per_unit


def test_the_distance_told_is_the_largest_there_is():
    """Every pair of records in one row of a small table, through the counting itself."""
    base = table(12).to_pylist()
    found = set()
    for record in product("pq", "rst", ["u", "v", None]):
        changed = [dict(zip("abc", record, strict=True)), *base[1:]]
        texts = pa.schema([(name, pa.string()) for name in "abc"])
        tables = (pa.Table.from_pylist(rows, schema=texts) for rows in (base, changed))
        one, other = (count(data, SCHEMA, WORKLOAD.marginals) for data in tables)
        moves = [int(((one.tables[m] - other.tables[m]) ** 2).sum()) for m in WORKLOAD.marginals]
        assert max(moves) <= 2
        found.add(tuple(moves))
        assert one.rows == other.rows
    assert (2, 2) in found


def test_noise_of_the_whole_path_has_the_stated_size():
    """40 000 empty cells measured at once; a thousandth more or less than the stated noise is found at 6 sd."""
    wide = Schema(column=tuple(Categorical(name=n, levels=tuple(range(200))) for n in "xy"))
    data = pa.table({"x": [0, 1] * 5, "y": [0] * 10})
    noisy = measure(data, wide, Workload.of(wide, [["x", "y"]]), Budget(0.5, 1e-6))
    values, stddev = noisy.measurements[0].values.astype(float), noisy.measurements[0].stddev
    spread = values.std() / stddev

    assert abs(spread - 1) < 6 / math.sqrt(2 * values.size)
    assert not abs(spread * math.sqrt(2) - 1) < 6 / math.sqrt(2 * values.size)
    assert abs(values.mean()) < 6 * stddev / math.sqrt(values.size)


def test_a_drafted_schema_is_refused_until_it_is_reviewed():
    drafted = SCHEMA.model_copy(update={"origin": "data-derived"})

    with pytest.raises(SchemaError, match="Check every level"):
        measure("nowhere.csv", drafted, WORKLOAD, Budget(1.0))
    for origin in ("reviewed", "public-sample", "hand-written"):
        measure(table(), SCHEMA.model_copy(update={"origin": origin}), WORKLOAD, Budget(1.0))


def test_several_rows_per_unit_need_the_units_column():
    with pytest.raises(DataError) as caught:
        measure(table(), SCHEMA, WORKLOAD, Budget(1.0), max_rows_per_unit=2)
    assert caught.value.code == "unit-column-missing"
    with pytest.raises(NoisewiseError):
        measure(table(), SCHEMA, WORKLOAD, Budget(1.0), max_rows_per_unit=0)


def test_nothing_is_drawn_when_the_table_does_not_fit():
    recorder = Recorder()
    for data in (table(a=["p"] * 199 + ["CANARY"]), table(a=["p"] * 199 + [None]), table().select(["a", "b"])):
        with pytest.raises(DataError):
            measure_with_insecure_noise_for_tests(data, SCHEMA, WORKLOAD, Budget(1.0), noise=recorder)
    with pytest.raises(DataError):
        measure_with_insecure_noise_for_tests(table(), SCHEMA, WORKLOAD, Budget(1.0, 0.01), noise=recorder)
    assert recorder.asked == []


def test_there_is_no_seed():
    import inspect

    from noisewise.privacy.noise import NoiseSource, OpenDPNoise

    for function in (measure, OpenDPNoise.__init__, NoiseSource.gaussian, NoiseSource.choose, OpenDPNoise.gaussian):
        names = inspect.signature(function).parameters
        assert not {name for name in names if name in ("seed", "key", "rng", "random_state", "generator")}
    one, other = (measure(table(), SCHEMA, WORKLOAD, Budget(0.1)).measurements[0].values for _ in range(2))
    assert not np.array_equal(one, other)


def test_an_overspending_plan_is_stopped_before_anything_is_drawn(monkeypatch):
    from noisewise.privacy import acts as module

    recorder = Recorder()
    monkeypatch.setattr(module, "divide", lambda *_: (PrivacyLoss(stddevs=(2.0, 2.0)),))
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        measure_with_insecure_noise_for_tests(table(), SCHEMA, WORKLOAD, Budget(0.1), noise=recorder)
    assert recorder.asked == []


def test_non_interference_of_everything_but_the_noisy_counts():
    """With the noise taken out of play, tables with equal counts give equal results: no other property enters."""
    base = table(300, seed=3)
    order = np.random.default_rng(0).permutation(300)
    wider = base.append_column("name", pa.array([f"person {i}" for i in range(300)]))
    dictionary = pa.table({n: base[n].dictionary_encode() for n in base.column_names})
    results = [
        measure_with_insecure_noise_for_tests(data, SCHEMA, WORKLOAD, Budget(1.0), noise=Twin(seed=5))
        for data in (base, base.take(order), wider, dictionary, base.select(["c", "a", "b"]))
    ]

    assert len({result.hash for result in results}) == 1
    assert len({result.privacy.model_dump_json() for result in results}) == 1
