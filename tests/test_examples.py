"""The studies under examples/, on the real tables: measured whole, run end to end reduced; at full size when asked."""

import json
import runpy
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

from conftest import REPOSITORY
from noisewise.artifacts import Release, damage
from noisewise.confidential.counts import count
from noisewise.study import Study, measure_study, plan_study, run_study
from noisewise.study.sections import PosteriorSection, SynthesisSection, WorkloadSection

EXAMPLES = REPOSITORY / "examples"
STUDIES = {
    "adult": EXAMPLES / "adult" / "adult.toml",
    "sdnist": EXAMPLES / "sdnist" / "sdnist.toml",
    "census1990": EXAMPLES / "census1990" / "census1990.toml",
    "postgres": EXAMPLES / "postgres" / "people.toml",
}
FROM_FILES = ["adult", "sdnist", "census1990"]
WIDE = ["sdnist", "census1990"]
ROWS = {"adult": 48_842, "sdnist": 7_634, "census1990": 20_000}


@pytest.fixture(scope="module")
def sources(data_folder, tmp_path_factory):
    standin = tmp_path_factory.mktemp("census") / "census-standin.csv"
    tree = data_folder / "census1990" / "uscensus1990_chowliu_cpts_fulldata.json"
    run_script(EXAMPLES / "census1990" / "make_table.py", tree, standin, "--rows", ROWS["census1990"])
    return {
        "adult": data_folder / "adult" / "adult.csv",
        "sdnist": data_folder / "sdnist" / "sdnist_ma2019.csv",
        "census1990": standin,
    }


def run_script(script, *arguments):
    before, sys.argv = sys.argv, [str(script), *map(str, arguments)]
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv = before


QUICK = PosteriorSection(method="hmc", settings={"chains": 2, "max_draws": 80})
"""As few chains and draws as there may be: whether they are enough is for the verdict, which need not hold here."""


def reduced(study: Study, name: str) -> Study:
    """All columns of the wide tables, with a quick fit; of Adult what its analyses need. Few datasets.

    The census table has a tenth of its rows here, so that noise of the same relative size takes ten times the epsilon.
    """
    few = {"synthesis": SynthesisSection(datasets=20)}
    privacy = study.privacy.model_copy(update={"epsilon": {"sdnist": 3.0, "census1990": 20.0}.get(name, 50.0)})
    if name in WIDE:
        return study.model_copy(update={**few, "privacy": privacy, "posterior": QUICK})
    return study.model_copy(
        update={
            **few,
            "privacy": privacy,
            "workload": WorkloadSection(),
            "posterior": PosteriorSection(method="laplace"),
        }
    )


@pytest.mark.parametrize("name", STUDIES)
def test_every_example_can_be_planned(name):
    planned = plan_study(Study.load(STUDIES[name]), rows=ROWS.get(name))

    assert planned.size.fits
    assert all(support.supported for support in planned.support.values()) or name == "adult"
    assert not any("lost in the noise" in warning for warning in planned.warnings) or name == "census1990"


@pytest.mark.parametrize("name", FROM_FILES)
def test_every_example_fits_its_table_and_measures_all_of_its_columns(name, sources, tmp_path):
    study, release = Study.load(STUDIES[name]).reading(str(sources[name])), Release(tmp_path / name)

    counts = measure_study(study, release)

    assert counts.rows == ROWS[name]
    measured = {column for marginal in counts.marginals for column in marginal}
    assert measured == set(counts.schema.names)
    header = sources[name].read_text("utf-8-sig").partition("\n")[0].strip().split(",")
    assert set(counts.schema.names) <= set(header)
    if name != "adult":  # five of its fifteen columns are left to the reader
        assert set(counts.schema.names) == set(header)


@pytest.mark.parametrize("name", FROM_FILES)
def test_every_example_runs_end_to_end_reduced(name, sources, tmp_path):
    whole, release = Study.load(STUDIES[name]).reading(str(sources[name])), Release(tmp_path / name)
    study = reduced(whole, name)

    outcome = run_study(study, release, allow_untrusted=True)

    check(study, release, outcome)
    if name in WIDE:
        assert len(outcome.posterior.noisy_counts.marginals) == len(study.load_workload(release.schema()).marginals)
    if name == "sdnist":
        for table in release.datasets():
            follows_the_dictionary(table)


def check(study, release, outcome, may_fail=False):
    """Everything is there; with `may_fail` an analysis may say that a rare level was lost in too many datasets."""
    told = {*outcome.results, *(outcome.failed if may_fail else ())}
    assert told == {analysis.formula for analysis in study.analysis}
    assert outcome.report.exists()
    assert damage(release) == []
    for pooled in outcome.results.values():
        assert not pooled.params.isna().any()
    table = release.datasets()[0]
    assert tuple(table.column_names) == release.schema().names


def follows_the_dictionary(table):
    """Some of the dictionary's definitions, by hand, on the released values."""
    text = {name: table[name].cast("string") for name in ("MSP", "DVET", "OWN_RENT", "INDP_CAT", "PUMA")}
    child = pc.less(table["AGEP"], 15)
    group_quarters = pc.equal(text["OWN_RENT"], "group quarters")
    assert pc.all(pc.equal(child, pc.equal(text["MSP"], "under 15"))).as_py()
    assert pc.all(pc.equal(child, pc.is_null(table["PINCP"]))).as_py()
    assert not pc.any(pc.and_(child, pc.not_equal(text["INDP_CAT"], "none"))).as_py()
    assert not pc.any(pc.and_(child, pc.equal(text["DVET"], "rated"))).as_py()
    assert pc.all(pc.equal(group_quarters, pc.equal(table["WGTP"], 0))).as_py()
    assert pc.all(pc.equal(group_quarters, pc.is_null(table["NOC"]))).as_py()
    assert pc.all(pc.equal(pc.equal(text["PUMA"], "25-02800"), pc.equal(table["DENSITY"], 3683.9))).as_py()


def test_the_example_on_a_server_runs_with_its_rules_in_every_row(postgres, tmp_path):
    with postgres.connect() as connection:
        connection.execute((EXAMPLES / "postgres" / "people.sql").read_text("utf-8"))
    study = Study.load(STUDIES["postgres"]).reading(f"{postgres.address}::people")
    study = study.model_copy(update={"synthesis": SynthesisSection(datasets=20)})
    release = Release(tmp_path / "people")

    outcome = run_study(study, release)  # the posterior is to be trusted, or this is refused

    check(study, release, outcome)
    assert outcome.posterior.noisy_counts.rows == 20_000
    south = pa.array(["Espoo", "Helsinki"])
    for table in release.datasets():
        child = pc.less(table["age"], 15)
        assert pc.all(pc.equal(child, pc.is_null(table["employed"]))).as_py()
        assert not pc.any(pc.and_(child, pc.not_equal(table["marital"].cast("string"), "single"))).as_py()
        in_south = pc.is_in(table["city"].cast("string"), value_set=south)
        assert pc.all(pc.equal(in_south, pc.equal(table["region"].cast("string"), "south"))).as_py()


def test_the_census_stand_in_has_the_trees_shares(sources, data_folder):
    text = (data_folder / "census1990" / "uscensus1990_chowliu_cpts_fulldata.json").read_text("utf-8")
    ages = json.loads(text)["nodes"]["dAge"]
    drawn = pa.csv.read_csv(sources["census1990"])["dAge"].to_numpy()
    for value, share in zip(ages["values"], ages["p"], strict=True):
        # Five standard errors of a share among 20,000 rows.
        assert abs((drawn == value).mean() - share) < 5 * (share * (1 - share) / ROWS["census1990"]) ** 0.5


def test_the_census_schema_has_a_place_for_the_real_rows(data_folder):
    schema = Study.load(STUDIES["census1990"]).load_schema()
    real = data_folder / "census1990" / "uscensus1990_first1000.csv"

    counts = count(real, schema, [(name,) for name in schema.names])

    assert counts.rows == 1_000
    by_hand = pa.csv.read_csv(real)["iMarital"].value_counts().to_pylist()
    found = dict(zip(schema.column("iMarital").levels, counts.tables["iMarital",].tolist(), strict=True))
    assert {one["values"]: one["counts"] for one in by_hand} == {level: n for level, n in found.items() if n}


@pytest.mark.slow
def test_adult_runs_as_it_stands(sources, tmp_path):
    study, release = Study.load(STUDIES["adult"]).reading(str(sources["adult"])), Release(tmp_path / "adult")

    outcome = run_study(study, release)

    assert outcome.posterior.verdict.trusted
    check(study, release, outcome, may_fail=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
def test_the_wide_examples_run_as_they_stand(name, sources, data_folder, tmp_path):
    """To a posterior that is to be trusted; the census with all of its stand-in's 200,000 rows."""
    table = sources[name]
    if name == "census1990":
        tree, table = data_folder / "census1990" / "uscensus1990_chowliu_cpts_fulldata.json", tmp_path / "standin.csv"
        run_script(EXAMPLES / "census1990" / "make_table.py", tree, table)
    study, release = Study.load(STUDIES[name]).reading(str(table)), Release(tmp_path / name)

    outcome = run_study(study, release)

    assert outcome.posterior.verdict.trusted
    check(study, release, outcome)
    assert outcome.posterior.noisy_counts.rows == study.data.rows
    assert len(release.datasets()) == 100
