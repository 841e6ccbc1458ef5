"""The plan: its numbers are those of measuring, no table is opened for it, and what cannot be done is refused."""

import json
import math
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

import noisewise.confidential.sources
from noisewise import Budget, Workload, glm, plan
from noisewise.cli import app
from noisewise.demo import FAMILY, FORMULA, demo_schema, demo_table
from noisewise.errors import BudgetError, ModelError, StudyError, WorkloadError
from noisewise.planning import Rehearsal
from noisewise.planning.effort import MEASURED, effort
from noisewise.planning.sizes import refuse_large_model
from noisewise.privacy.measure import measure
from noisewise.privacy.spanning import Mst
from noisewise.rehearsal import FromSample
from noisewise.schema import Categorical, Schema
from noisewise.study import Study, plan_study
from small_study import SMALL_SCHEMA, SMALL_STUDY

SCHEMA = Schema.from_toml("""
name = "<people> & more"
[[column]]
name = "age"
type = "numeric"
edges = [0, 15, 65, 100]
[[column]]
name = "spouse"
type = "boolean"
[[column]]
name = "town"
type = "categorical"
levels = ["a", "b", "c", "d"]
[[rule]]
impossible = { age = "[0, 15)", spouse = "true" }
""")
MARGINALS = [["age", "spouse"], ["spouse", "town"]]


def planned(rows=1000, marginals=MARGINALS, epsilon=1.0, **options):
    return plan(SCHEMA, rows, Workload.of(SCHEMA, marginals), Budget(epsilon), **options)


def test_the_noise_is_that_of_the_golden_value():
    levels = tuple(str(k) for k in range(3))
    schema = Schema(column=tuple(Categorical(name=f"c{i}", levels=levels) for i in range(10)))
    ten = plan(schema, 46_043, Workload.of(schema, [[name] for name in schema.names]), Budget(1.0))

    # The exact discrete value for ten marginals, substitution and delta 1/46043² is 25.129545; rounded up.
    assert [one.stddev for one in ten.marginals] == [25.129546] * 10
    assert [budget.epsilon for budget in ten.budgets] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert ten.budgets[0].stddevs[0] == 230.502365


def test_the_noise_is_that_which_measuring_adds():
    schema, table = demo_schema(), demo_table()
    workload = Workload.of(schema, [["x1", "x3"], ["x2", "x3"]], weights=[1, 4])
    asked = {"unit": "x1", "max_rows_per_unit": 2000}

    promised = plan(schema, 2000, workload, Budget(5.0), **asked)
    counts = measure(table, schema, workload, Budget(5.0), **asked)

    assert tuple(one.stddev for one in promised.marginals) == tuple(m.stddev for m in counts.measurements)
    assert promised.delta == counts.privacy.delta
    assert promised.budgets[2].rho == counts.privacy.rho
    assert promised.unit == counts.privacy.unit


def test_cells_that_rules_exclude_are_not_counted():
    own = planned()
    assert [one.cells for one in own.marginals] == [5, 8]
    assert own.cells == 13
    assert own.marginals[0].average_count == 200


def test_no_table_is_opened(tmp_path, monkeypatch):
    def refused(*_):
        raise AssertionError("a table was opened")

    monkeypatch.setattr(noisewise.confidential.sources, "open_path", refused)
    study = _study(tmp_path, "[data]\nrows = 500")  # there is no table.csv beside it

    assert plan_study(study).rows == 500
    assert plan_study(study, rows=700).rows == 700


def _study(folder, data="[data]"):
    (folder / "table.schema.toml").write_text(SMALL_SCHEMA)
    (folder / "study.toml").write_text(SMALL_STUDY.replace("[data]", data))
    return Study.load(folder / "study.toml")


def test_without_the_number_of_rows_it_asks_for_it(tmp_path):
    with pytest.raises(StudyError, match="Give --rows, or rows in"):
        plan_study(_study(tmp_path))


def test_a_marginal_that_drowns_in_the_noise_is_named():
    assert not planned(rows=10_000).warnings
    told = planned(rows=20).warnings
    assert len(told) == 2
    assert told[0].startswith("age × spouse: 4 rows per cell on average and noise of")
    assert "leave it out" in told[0]


def test_an_analysis_that_is_not_supported_is_named():
    own = planned(analyses=["town ~ age + spouse", "town ~ spouse"])

    assert not own.support["town ~ age + spouse"].supported
    assert own.support["town ~ spouse"].supported
    assert any("age × town: connected through other columns only" in warning for warning in own.warnings)


def _ring(columns=8, levels=40):
    labels = tuple(str(k) for k in range(levels))
    schema = Schema(column=tuple(Categorical(name=f"c{i}", levels=labels) for i in range(columns)))
    return schema, [(f"c{i}", f"c{(i + 1) % columns}") for i in range(columns)]


def test_a_model_that_would_not_fit_is_refused_with_its_size_and_the_marginal_to_leave_out():
    schema, ring = _ring(levels=300)
    with pytest.raises(ModelError) as caught:
        plan(schema, 10_000, Workload.of(schema, ring), Budget(1.0))
    # A ring of 8 columns is cut into 6 triangles of 300³ cells; without one marginal it is a chain of 7 pairs.
    assert f"{6 * 300**3:,} cells" in str(caught.value)
    assert f"to {7 * 300**2:,}" in str(caught.value)
    assert "Leaving out ['c" in str(caught.value)
    refuse_large_model(schema, ring[:-1])


def test_what_a_fit_needs_is_told_and_grows_with_the_cells():
    schema, ring = _ring(levels=10)
    small, large = (refuse_large_model(schema, marginals).effort for marginals in (ring[:2], ring))

    assert large.memory > small.memory
    assert large.seconds > small.seconds
    for cells, seconds, memory in MEASURED:
        found = effort(cells // 2, cells - cells // 2)
        assert found.seconds == pytest.approx(seconds)  # what was measured is what is told
        assert found.memory == pytest.approx(1e6 * memory, abs=1)  # whole bytes
    (fewest, least, _), (most, longest, _) = MEASURED[0], MEASURED[-1]
    assert effort(0, fewest // 2).seconds == pytest.approx(least * (fewest // 2) / fewest)
    assert effort(most, most).seconds == pytest.approx(2 * longest)
    assert "hours" in effort(10**6, 10**6).sentence


def test_a_ring_that_fits_is_pointed_out():
    schema, ring = _ring()
    assert any(
        "close rings. Leaving out" in w for w in plan(schema, 10**7, Workload.of(schema, ring), Budget(1.0)).warnings
    )


def test_a_budget_that_is_none_is_refused_by_name():
    with pytest.raises(BudgetError, match="epsilon is -1"):
        planned(epsilons=[-1.0])


def test_a_selection_is_planned_with_its_share_and_what_is_not_known_yet():
    own = planned(marginals=[["age", "spouse"]], rows=10_000, select=Mst(share=0.2))

    assert [(act.name, round(act.share, 9)) for act in own.acts] == [("select", 0.2), ("measure", 0.8)]
    assert math.isclose(sum(act.rho for act in own.acts), own.budgets[2].rho)
    assert any("not known before it looks" in warning for warning in own.warnings)


class Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert not any(name in ("src", "href", "onload") for name, _ in attrs)

    def handle_data(self, data):
        self.text += data


def test_text_page_and_json_say_the_same():
    own = planned(rows=20, analyses=["town ~ spouse"])
    page, content = Texts(), json.loads(own.to_json())
    page.feed(own.to_html())

    for said in ("<people> & more", "age × spouse", f"{own.marginals[0].stddev:.3g}", *own.warnings):
        assert said in str(own)
        assert said in page.text
    assert "script" not in page.tags
    assert [one["stddev"] for one in content["marginals"]] == [one.stddev for one in own.marginals]
    assert content["support"]["town ~ spouse"]["supported"] is True
    assert content["warnings"] == list(own.warnings)
    assert own.to_json() == planned(rows=20, analyses=["town ~ spouse"]).to_json()


def test_a_rehearsal_tells_longer_intervals_for_smaller_budgets():
    schema = demo_schema()
    x = np.random.default_rng(1).integers(0, 2, (20_000, 2))
    chance = 1 / (1 + np.exp(-x[:, 0]))
    codes = np.column_stack([x, np.random.default_rng(2).random(20_000) < chance]).astype(int)
    workload = Workload.of(schema, [schema.names])

    own = plan(
        schema,
        3_000,
        workload,
        Budget(0.5),
        analyses={FORMULA: glm(FORMULA, FAMILY)},
        epsilons=[0.1, 3.0],
        rehearsal=Rehearsal(population=FromSample(codes=codes)),
    )

    assert own.expected.epsilons == (0.1, 0.5, 3.0)
    analysis = own.expected.analyses[0]
    # One table of 8 cells of about 375 rows each: sampling alone gives 19, the noise of ε = 0.1 is 73, that of ε = 3
    # 3. So lengths differ by about (19² + 73²)½ / 19 = 4; from 100 datasets they are known to 7 %.
    for term in analysis.terms:
        assert term.lengths[0] > 2 * term.lengths[2]
        assert 0.5 < term.lengths[2] / term.without_privacy < 2
    assert analysis.times_longer(0) > 2 * analysis.times_longer(2)
    assert "100 synthetic datasets" in str(own)
    assert "ε = 0.1" in own.to_html()


def test_a_rehearsal_needs_estimators():
    with pytest.raises(WorkloadError, match="as estimators by formula"):
        planned(analyses=["town ~ age"], rehearsal=Rehearsal(population=FromSample(codes=np.zeros((1, 3), int))))


def test_the_command_prints_and_writes(tmp_path):
    _study(tmp_path, "[data]\nrows = 500")
    page, content = tmp_path / "plan.html", tmp_path / "plan.json"
    done = CliRunner().invoke(
        app, ["plan", str(tmp_path / "study.toml"), "--epsilon", "2", "--html", str(page), "--json", str(content)]
    )

    assert done.exit_code == 0, done.output
    assert "Plan for small: 500 rows, epsilon 1" in done.output
    assert [budget["epsilon"] for budget in json.loads(content.read_text())["budgets"]] == [1.0, 2.0]
    assert "<h1>Plan of a release</h1>" in page.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["plan.html", "plan.json", "study.toml", "table.schema.toml"]
    )
