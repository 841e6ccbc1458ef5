"""A study file: what it says, what it refuses, and a whole run."""

import re

import polars as pl
import pytest
from typer.testing import CliRunner

from conftest import REPOSITORY
from experiments.seeded_noise import SeededNoise
from noisewise import Budget, fit, measure, synthesize
from noisewise.analysis import RidgeBootstrap
from noisewise.artifacts import Release, damage
from noisewise.cli import app
from noisewise.errors import AnalysisError, FitError, ModelError, NoisewiseError, ReleaseError, SchemaError, StudyError
from noisewise.planning.sizes import refuse_large_model
from noisewise.posterior.laplace import Laplace
from noisewise.posterior.result import Posterior
from noisewise.reporting.snippets import _python
from noisewise.schema import Boolean, Categorical, Schema
from noisewise.schema.bought import QuantileNumeric
from noisewise.study import FIT_METHODS, PosteriorSection, Study, analyze_release, measure_study, run_study
from noisewise.study.analyses import estimator_of, refuse_unworkable
from noisewise.workload import Workload
from small_study import SMALL_SCHEMA, SMALL_STUDY, small_study


def _load(tmp_path, text):
    (tmp_path / "study.toml").write_text(text)
    return Study.load(tmp_path / "study.toml")


def test_defaults_are_those_documented(tmp_path):
    study = _load(tmp_path, SMALL_STUDY)

    assert study.privacy.neighbours == "substitute-one"
    assert study.privacy.delta is None
    assert (study.posterior.method, study.posterior.prior_stddev, study.posterior.cells) == ("auto", 10.0, "all")
    assert study.synthesis.rows is None


def test_paths_are_relative_to_the_study_file(tmp_path, monkeypatch):
    study = _load(tmp_path, SMALL_STUDY)
    monkeypatch.chdir("/")

    assert study.source() == str(tmp_path / "table.csv")
    assert study.reading("other.csv").source() == "/other.csv"
    assert study.reading(None) is study


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[privacy]", "[privcy]", "Did you mean 'privacy'"),
        ("epsilon = 1.0", "epsilom = 1.0", "Did you mean 'epsilon'"),
        ("epsilon = 1.0", "", "'privacy.epsilon' is missing"),
        ("epsilon = 1.0", 'epsilon = "one"', "privacy.epsilon"),
        ("epsilon = 1.0", 'epsilon = 1.0\nneighbours = "add-remove"', "substitute-one"),
        ("epsilon = 1.0", "epsilon = 1.0\nmax_rows_per_unit = 0", "max_rows_per_unit"),
        ("datasets = 20", 'datasets = "many"', "synthesis.datasets"),
        ("[data]", "[data", "not valid TOML"),
        ("[privacy]", '[posterior]\nmethod = "laplac"\n[privacy]', "Did you mean 'laplace'?"),
        (
            "[privacy]",
            '[posterior]\nmethod = "laplace"\nsettings = { drows = 200 }\n[privacy]',
            "method 'laplace' has no setting 'drows'. Did you mean 'draws'?",
        ),
        (
            "[privacy]",
            '[posterior]\nmethod = "laplace"\nsettings = { draws = "many" }\n[privacy]',
            "method 'laplace': draws is 'many'",
        ),
        ("[privacy]", "[posterior]\nsettings = { draws = 200 }\n[privacy]", "Name a method to give it settings."),
    ],
)
def test_a_slip_is_named_with_its_place(tmp_path, old, new, words):
    assert old in SMALL_STUDY
    with pytest.raises(StudyError, match=r"study\.toml") as caught:
        _load(tmp_path, SMALL_STUDY.replace(old, new, 1))

    assert words in str(caught.value)


def test_a_method_is_an_object_with_its_settings(tmp_path):
    text = SMALL_STUDY + '\n[posterior]\nmethod = "laplace"\nsettings = { draws = 200 }\n'

    assert _load(tmp_path, text).posterior.chosen_method == Laplace(draws=200)
    assert _load(tmp_path, SMALL_STUDY).posterior.chosen_method is None


def test_the_commands_help_lists_the_methods():
    told = CliRunner().invoke(app, ["fit", "--help"]).stdout

    assert all(name in told for name in FIT_METHODS)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"Cannot read the study .*none\.toml"):
        Study.load(tmp_path / "none.toml")


def test_a_formula_with_an_unknown_column_is_refused_before_anything_is_measured(tmp_path):
    study = small_study(tmp_path, SMALL_STUDY.replace('formula = "y ~ x"', 'formula = "y ~ z"'))

    with pytest.raises(SchemaError, match="Column 'z' is not in the schema"):
        measure_study(study, Release(tmp_path / "release"))
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('model = "binomial"', 'model = "binomal"', "Did you mean 'binomial'?"),
        ('formula = "y ~ x"', 'formula = "y ~ x:"', "Cannot read the formula"),
    ],
)
def test_an_analysis_that_cannot_work_is_refused_before_anything_is_spent(tmp_path, old, new, words):
    study = small_study(tmp_path, SMALL_STUDY.replace(old, new))

    def never(*_):
        raise AssertionError("the table was opened")

    with pytest.raises(NoisewiseError, match=re.escape(words)) as caught:
        measure_study(study, Release(tmp_path / "release"), measuring=never)
    assert caught.value.exit_code == 3


def test_models_are_named_in_a_study():
    columns = (Categorical(name="g", levels=("a", "b", "c"), ordered=True), Boolean(name="x"))
    schema = Schema(column=columns)

    models = {name: estimator_of({"model": name, "formula": "g ~ x"}) for name in ("ordered-logit", "poisson")}

    assert [type(model).__name__ for model in models.values()] == ["OrderedLogit", "Glm"]
    refuse_unworkable(schema, [{"model": "multinomial-logit", "formula": "g ~ x"}])
    with pytest.raises(StudyError, match=r"Nothing was measured\.$"):
        refuse_unworkable(schema, [{"model": "binomial", "formula": "g ~ x"}])


def test_a_remedy_for_empty_cells_is_named_in_a_study(tmp_path):
    study = small_study(tmp_path, SMALL_STUDY + 'remedy = "ridge-bootstrap"\n')

    assert study.analysis[0].written == {"model": "binomial", "formula": "y ~ x", "remedy": "ridge-bootstrap"}
    assert estimator_of(study.analysis[0].written).remedy == RidgeBootstrap()
    assert "remedy=RidgeBootstrap()" in _python("y ~ x", "binomial", "RidgeBootstrap")
    with pytest.raises(AnalysisError, match="not one for 'ordered-logit'"):
        estimator_of({"model": "ordered-logit", "formula": "y ~ x", "remedy": "ridge-bootstrap"})
    with pytest.raises(StudyError, match="remedy"):
        small_study(tmp_path, SMALL_STUDY + 'remedy = "hope"\n')


def test_an_analysis_of_a_column_whose_edges_are_yet_to_be_bought_is_tried_on_even_ones():
    bought = QuantileNumeric(name="pay", edges="quantiles", bins=3, grid=(0, 10, 20, 30, 40))
    schema = Schema(column=(bought, Boolean(name="x")))

    refuse_unworkable(schema, [{"model": "gaussian", "formula": "pay ~ x"}])


def test_marginals_default_to_what_the_analyses_need(tmp_path):
    study = _load(tmp_path, SMALL_STUDY)
    schema = Schema.from_toml(SMALL_SCHEMA)

    assert study.load_workload(schema).marginals == (("x", "y"),)
    named = _load(tmp_path, SMALL_STUDY + '\n[workload]\nmarginals = [["x"], ["y"]]\n')
    assert named.load_workload(schema).marginals == (("x",), ("y",))


def test_a_model_that_would_not_fit_memory_is_refused_before_anything_is_spent():
    levels = tuple(str(i) for i in range(40))
    names = "abcdefgh"
    schema = Schema(column=tuple(Categorical(name=name, levels=levels) for name in names))
    everything = Workload.of(schema, [[a, b] for i, a in enumerate(names) for b in names[i + 1 :]])

    with pytest.raises(ModelError, match=r"more than 20,000,000.*Nothing was measured"):
        refuse_large_model(schema, everything.marginals)
    refuse_large_model(schema, Workload.of(schema, [["a", "b"], ["b", "c"]]).marginals)


def test_a_whole_run_and_what_it_leaves_behind(tmp_path):
    study = small_study(tmp_path)
    release = Release(tmp_path / "release")

    outcome = run_study(study, release)

    assert damage(release) == []
    assert isinstance(outcome.posterior, Posterior)
    assert set(outcome.results) == {"y ~ x"}
    assert len(release.datasets()) == 20
    assert outcome.report == tmp_path / "release" / "report.html"
    assert sorted(path.name for path in (tmp_path / "release").iterdir()) == [
        "manifest.json",
        "noisy_counts.parquet",
        "posterior.npz",
        "report.html",
        "report.json",
        "schema.toml",
        "synthetic",
    ]


def test_a_second_run_goes_on_from_the_noisy_counts(tmp_path):
    study = small_study(tmp_path)
    release = Release(tmp_path / "release")
    first = measure_study(study, release)

    outcome = run_study(study, release)

    assert outcome.posterior.noisy_counts.hash == first.hash
    with pytest.raises(ReleaseError, match="would spend the budget again"):
        measure_study(study, release)


def test_a_release_of_another_study_is_not_gone_on_with(tmp_path):
    study = small_study(tmp_path)
    release = Release(tmp_path / "release")
    measure_study(study, release)
    other = small_study(tmp_path, SMALL_STUDY + '\n[workload]\nmarginals = [["x"], ["y"]]\n')

    with pytest.raises(StudyError, match="other marginals"):
        run_study(other, release)


def test_analyses_that_are_not_named_are_not_run(tmp_path):
    assert analyze_release(Release(tmp_path), ()) == {}


def test_adult_runs_from_its_study_file_and_a_doubt_travels_with_it(data_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("noisewise.privacy.measure.OpenDPNoise", lambda: SeededNoise(1))
    study = Study.load(REPOSITORY / "examples" / "adult" / "adult.toml").reading(
        str(data_folder / "adult" / "adult.csv")
    )
    section = PosteriorSection(method="laplace", settings={"proposals": 4_000})  # too few for 400 effective draws
    study = study.model_copy(update={"posterior": section})

    outcome = run_study(study, Release("release"), allow_untrusted=True)

    (pooled,) = outcome.results.values()
    assert not outcome.posterior.verdict.trusted
    (reason,) = outcome.posterior.verdict.reasons
    assert len(pooled.params) == 7
    assert pooled.params["gender[T.Male]"] == pytest.approx(1.2, abs=0.5)
    assert any(reason in note for note in pooled.notes)
    assert outcome.posterior.noisy_counts.rows == 48_842


def test_a_table_with_one_level_everywhere_has_nothing_to_estimate():
    schema = Schema(column=(Categorical(name="x", levels=("a",)),))
    frame = pl.DataFrame({"x": ["a"] * 50})
    noisy_counts = measure(frame, schema, Workload.of(schema, [["x"]]), Budget(1.0))

    with pytest.raises(FitError, match="single level"):
        fit(noisy_counts)


def test_a_column_with_one_level_beside_others_is_fine():
    schema = Schema(column=(Categorical(name="x", levels=("a",)), Boolean(name="y")))
    frame = pl.DataFrame({"x": ["a"] * 200, "y": [True, False] * 100})

    posterior = fit(measure(frame, schema, Workload.of(schema, [["x", "y"]]), Budget(1.0)))

    assert synthesize(posterior, datasets=2)[0]["x"].to_pylist() == ["a"] * 200
