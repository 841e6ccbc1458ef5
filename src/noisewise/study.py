"""A study: one TOML file that says what to read, protect, measure, fit, draw and analyse."""

import dataclasses
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from noisewise.analysis.analyze import analyze
from noisewise.analysis.glm import glm
from noisewise.analysis.pooled import Pooled
from noisewise.artifacts import Release
from noisewise.errors import ReleaseError, StudyError, did_you_mean
from noisewise.noisy_counts import NoisyCounts
from noisewise.planning.sizes import refuse_large_model
from noisewise.posterior.fit import Method, fit
from noisewise.posterior.laplace import Laplace
from noisewise.posterior.problem import NormalPrior
from noisewise.posterior.result import Posterior
from noisewise.privacy.ledger import Ledger, lineage_of
from noisewise.progress import Progress, silent
from noisewise.reporting.report import report
from noisewise.schema import Schema
from noisewise.synthesis import DrawnDatasets, synthesize
from noisewise.workload import Workload, marginals_for

FIT_METHODS: dict[str, type[Method] | None] = {
    "auto": None,  # `fit` chooses
    "laplace": Laplace,
}
"""The methods of fitting by the names that files and commands use. A new method is one line here."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataSection(_Section):
    """The section [data]."""

    source: str
    """A .csv or .parquet file, or "file.duckdb::table"; relative to the study file."""


class SchemaSection(_Section):
    """The section [schema]."""

    file: str
    """The schema file; relative to the study file."""


class CapSection(_Section):
    """The table `cap` of the section [privacy]."""

    epsilon: float
    """ε of all measurements together."""
    delta: float
    """δ of all measurements together."""


class PrivacySection(_Section):
    """The section [privacy]."""

    epsilon: float
    """ε of the release."""
    delta: float | None = None
    """δ of the release; by default 1/n², with n the public number of rows."""
    neighbours: Literal["substitute-one"] = "substitute-one"
    """Neighbouring tables differ by the content of one unit."""
    unit: str | None = None
    """The column that names the unit of protection, where a unit may have several rows."""
    max_rows_per_unit: int = Field(default=1, ge=1)
    """How many rows one unit contributes at the most."""
    ledger: str | None = None
    """The ledger file that measuring is debited to; relative to the study file. The commands keep one beside the
    study by default."""
    lineage: str | None = None
    """The name, in the ledger, of the people the table is about; by default where the source is."""
    occasion: str = ""
    """Which measurement this is: the same question on another occasion asks for new noise, and is paid for."""
    cap: CapSection | None = None
    """What all measurements of the lineage together may cost; registered with the first of them, for good."""


class WorkloadSection(_Section):
    """The section [workload]."""

    marginals: tuple[tuple[str, ...], ...] = ()
    """The marginals to measure."""
    analyses: tuple[str, ...] = ()
    """Formulas whose marginals are added."""


class PosteriorSection(_Section):
    """The section [posterior]."""

    method: str = "auto"
    """How to fit: one of `FIT_METHODS`."""
    settings: dict[str, bool | int | float | str] = {}
    """The method's own settings, such as { draws = 2000 }; by default the method's defaults."""
    prior_stddev: float = 10.0
    """Standard deviation of the normal prior on the parameters."""
    cells: Literal["all", "canonical"] = "all"
    """Which noisy cells enter the likelihood."""
    seed: int = 0
    """Seed of the fit."""

    @field_validator("method")
    @classmethod
    def _known_method(cls, name: str) -> str:
        if name not in FIT_METHODS:
            raise ValueError(f"there is no method {name!r}. {did_you_mean(name, FIT_METHODS)}")
        return name

    @field_validator("settings")
    @classmethod
    def _fitting_settings(cls, given: dict[str, Any], info: Any) -> dict[str, Any]:
        if "method" in info.data:  # else the method itself is wrong, which has been said
            _method(info.data["method"], given)
        return given

    @property
    def chosen_method(self) -> Method | None:
        """The method as an object; None leaves the choice to `fit`."""
        return _method(self.method, self.settings)


def _method(name: str, given: dict[str, Any]) -> Method | None:
    """Build a method from its name and settings; a setting that it has not, or of the wrong kind, is a ValueError."""
    kind = FIT_METHODS[name]
    known = [field.name for field in dataclasses.fields(kind)] if kind is not None else []
    for setting in given:
        if setting not in known:
            hint = did_you_mean(setting, known) if known else "Name a method to give it settings."
            raise ValueError(f"method {name!r} has no setting {setting!r}. {hint}")
    try:
        return TypeAdapter(kind).validate_python(given) if kind is not None else None
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"method {name!r}: {problem['loc'][0]} is {problem['input']!r}: {problem['msg']}.") from None


class SynthesisSection(_Section):
    """The section [synthesis]."""

    datasets: int = 100
    """Number of synthetic datasets m."""
    rows: int | None = None
    """Rows of each; by default as many as the confidential table has."""
    seed: int = 0
    """Seed of the series."""


class AnalysisSection(_Section):
    """The section [[analysis]]."""

    model: str
    """The family of the generalised linear model: "binomial", "gaussian"."""
    formula: str
    """The formula, such as "income ~ age + race"."""


class Study(_Section):
    """A study file. Load one with `Study.load("study.toml")`."""

    data: DataSection
    """Where the confidential table is."""
    schema_: SchemaSection = Field(alias="schema")
    """Where the public schema is."""
    privacy: PrivacySection
    """The budget."""
    workload: WorkloadSection = WorkloadSection()
    """What is measured; by default what the analyses need."""
    posterior: PosteriorSection = PosteriorSection()
    """How to fit."""
    synthesis: SynthesisSection = SynthesisSection()
    """How many datasets to draw."""
    analysis: tuple[AnalysisSection, ...] = ()
    """The analyses to run and report."""
    folder: Path = Field(default=Path(), exclude=True)
    """The study file's folder: relative paths start there."""

    @classmethod
    def load(cls, path: str | Path) -> "Study":
        """Read a study file; errors name the file, the key and the fix."""
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text("utf-8-sig"))
        except OSError as error:
            raise StudyError(f"Cannot read the study {path}: {error.strerror}. Check the path.") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise StudyError(f"{path.name}: not valid TOML: {error}.") from None
        try:
            return cls.model_validate({**content, "folder": path.resolve().parent})
        except ValidationError as error:
            raise StudyError("\n".join(f"{path.name}: {_explain(problem)}" for problem in error.errors())) from None

    def load_schema(self) -> Schema:
        """Read the public schema."""
        return Schema.load(self.folder / self.schema_.file)

    def load_workload(self, schema: Schema) -> Workload:
        """Check the workload against the schema, and that the analyses name columns which are there.

        A workload that names neither marginals nor analyses measures what the [[analysis]] sections need.
        """
        intended = tuple(analysis.formula for analysis in self.analysis)
        for formula in intended:
            for column in sorted({column for marginal in marginals_for(formula) for column in marginal}):
                schema.index(column)
        named = self.workload.marginals or self.workload.analyses
        return Workload.of(schema, self.workload.marginals, self.workload.analyses if named else intended)

    def reading(self, source: str | None) -> "Study":
        """The same study on another source, whose relative path starts in the current folder; None changes nothing."""
        if source is None:
            return self
        absolute = source if "://" in source else str(Path(source).resolve())
        return self.model_copy(update={"data": DataSection(source=absolute)})

    def source(self) -> str:
        """The confidential source, with a relative path made absolute."""
        source = self.data.source
        return source if "://" in source else str(self.folder / source)

    def ledger(self, default: Path | None = None) -> Ledger | None:
        """The account that measuring is debited to: in the file [privacy] names, else in `default`."""
        path = default if self.privacy.ledger is None else self.folder / self.privacy.ledger
        if path is None:
            return None
        lineage = self.privacy.lineage or lineage_of(self.source(), path.resolve().parent)
        return Ledger(path, lineage, self.privacy.occasion)


Settings = TypeVar("Settings", PosteriorSection, SynthesisSection)


def settings(section: type[Settings], **given: Any) -> Settings:
    """One section from options instead of a file; an option that does not fit is a `StudyError`."""
    try:
        return section(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        option = str(problem["loc"][0]).replace("_", "-")
        raise StudyError(f"--{option} is {problem['input']!r}: {_said(problem)}") from None


def fit_counts(noisy_counts: NoisyCounts, section: PosteriorSection, progress: Progress = silent) -> Posterior:
    """Fit as a study's [posterior] section says."""
    prior = NormalPrior(stddev=section.prior_stddev)
    return fit(
        noisy_counts,
        section.chosen_method,
        prior=prior,
        cells=section.cells,
        seed=section.seed,
        progress=progress,
    )


def draw(posterior: Posterior, section: SynthesisSection, allow_untrusted: bool = False) -> DrawnDatasets:
    """Draw as a study's [synthesis] section says."""
    return synthesize(posterior, section.datasets, section.rows, seed=section.seed, allow_untrusted=allow_untrusted)


def analyze_release(
    release: Release, analyses: Sequence[Mapping[str, str]], *, strict: bool = False, progress: Progress = silent
) -> dict[str, Pooled]:
    """Run analyses, each a mapping with `formula` and `model`, on a release's datasets; results by formula."""
    results = {}
    datasets = release.datasets() if analyses else ()
    for number, analysis in enumerate(analyses):
        progress(f"analysing {analysis['formula']}", number, len(analyses))
        estimator = glm(analysis["formula"], family=analysis["model"])
        results[analysis["formula"]] = analyze(datasets, estimator, strict=strict)
    return results


def measured(study: Study, ledger: Ledger | None) -> NoisyCounts:
    """Open the confidential table and measure what a study asks for, here and now."""
    from noisewise.privacy.budget import Budget
    from noisewise.privacy.measure import measure

    schema, privacy = study.load_schema(), study.privacy
    if ledger is not None and privacy.cap is not None:
        cap = Budget(privacy.cap.epsilon, privacy.cap.delta)
        ledger.agree(cap, unit=privacy.unit, max_rows_per_unit=privacy.max_rows_per_unit)
    return measure(
        study.source(),
        schema,
        study.load_workload(schema),
        Budget(epsilon=privacy.epsilon, delta=privacy.delta),
        ledger,
        unit=privacy.unit,
        max_rows_per_unit=privacy.max_rows_per_unit,
    )


def measure_study(
    study: Study,
    release: Release,
    progress: Progress = silent,
    *,
    ledger: Ledger | None = None,
    measuring: Callable[[Study, Ledger | None], NoisyCounts] = measured,
) -> NoisyCounts:
    """Measure what a study asks for and start its release; a release that is there is never measured again.

    `ledger` is where the cost is debited (the study's own by default), and `measuring` who opens the table.
    """
    if release.exists():
        raise ReleaseError(
            f"{release.folder} already holds a release. Measuring again would spend the budget again: go on with "
            "`noisewise fit`, or give another folder."
        )
    schema = study.load_schema()
    workload = study.load_workload(schema)
    refuse_large_model(schema, workload.marginals)
    progress("counting and adding noise", 0, 0)
    noisy_counts = measuring(study, ledger or study.ledger())
    intended = tuple({"model": analysis.model, "formula": analysis.formula} for analysis in study.analysis)
    release.write_noisy_counts(noisy_counts, intended)
    return noisy_counts


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a whole run leaves in memory; the rest is in the release's folder."""

    posterior: Posterior
    """The posterior."""
    results: Mapping[str, Pooled]
    """The pooled analyses by formula."""
    report: Path
    """Where the report is."""


def run_study(
    study: Study,
    release: Release,
    *,
    allow_untrusted: bool = False,
    progress: Progress = silent,
    ledger: Ledger | None = None,
    measuring: Callable[[Study, Ledger | None], NoisyCounts] = measured,
) -> Outcome:
    """Go through all stages; noisy counts that are there are taken, never measured again."""
    if release.exists():
        noisy_counts = release.noisy_counts()
        _refuse_other_study(study, noisy_counts)
    else:
        noisy_counts = measure_study(study, release, progress, ledger=ledger, measuring=measuring)
    posterior = fit_counts(noisy_counts, study.posterior, progress)
    release.write_posterior(posterior)
    release.write_datasets(draw(posterior, study.synthesis, allow_untrusted), progress)
    results = analyze_release(release, release.manifest().analyses, progress=progress)
    return Outcome(posterior=posterior, results=results, report=report(release, results))


def _refuse_other_study(study: Study, noisy_counts: NoisyCounts) -> None:
    """Going on with another study's noisy counts would answer other questions than the file asks."""
    schema = study.load_schema()
    same = schema.hash == noisy_counts.schema.hash and study.load_workload(schema).marginals == noisy_counts.marginals
    if not same:
        raise StudyError(
            "The release that is there was measured with another schema or other marginals than this study asks for. "
            "Give another folder with --release, or correct the study."
        )


def _explain(problem: Any) -> str:
    location = [str(part) for part in problem["loc"]]
    where = ".".join(location)
    if problem["type"] == "extra_forbidden":
        section = Study.model_fields if len(location) == 1 else _section(location[0])
        known = ["schema" if key == "schema_" else key for key in section if key != "folder"]
        return f"unknown key {where!r}. {did_you_mean(location[-1], known)}"
    if problem["type"] == "missing":
        return f"{where!r} is missing. Add it."
    return f"{where}: {_said(problem)}"


def _said(problem: Any) -> str:
    """A problem in one sentence: ours as they are, pydantic's with the full stop they lack."""
    message = str(problem["msg"])
    ours = "Value error, "
    return message.removeprefix(ours) if message.startswith(ours) else f"{message}."


def _section(name: str) -> list[str]:
    field = Study.model_fields.get("schema_" if name == "schema" else name)
    annotation = field.annotation if field else None
    kind = AnalysisSection if name == "analysis" else annotation
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []
