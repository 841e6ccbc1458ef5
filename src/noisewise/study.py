"""A study: one TOML file that says what to read, protect, measure, fit, draw and analyse."""

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from noisewise.artifacts import Release
from noisewise.errors import StudyError, did_you_mean
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.fit import fit
from noisewise.posterior.laplace import Laplace
from noisewise.posterior.problem import NormalPrior
from noisewise.posterior.result import Posterior
from noisewise.progress import Progress, silent
from noisewise.schema import Schema
from noisewise.synthesis import DrawnDatasets, synthesize
from noisewise.workload import Workload


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DataSection(_Section):
    """[data]"""

    source: str
    """A .csv or .parquet file, or "file.duckdb::table"; relative to the study file."""


class SchemaSection(_Section):
    """[schema]"""

    file: str
    """The schema file; relative to the study file."""


class PrivacySection(_Section):
    """[privacy]"""

    epsilon: float
    """ε of the release."""
    delta: float | None = None
    """δ of the release; by default 1/n², with n the public number of rows."""
    neighbours: Literal["substitute-one"] = "substitute-one"
    """Neighbouring tables differ by the content of one unit."""
    max_rows_per_unit: int = 1
    """How many rows one unit contributes at the most."""


class WorkloadSection(_Section):
    """[workload]"""

    marginals: tuple[tuple[str, ...], ...] = ()
    """The marginals to measure."""
    analyses: tuple[str, ...] = ()
    """Formulas whose marginals are added."""


class PosteriorSection(_Section):
    """[posterior]"""

    method: Literal["auto", "laplace"] = "auto"
    """How to fit."""
    prior_stddev: float = 10.0
    """Standard deviation of the normal prior on the parameters."""
    cells: Literal["all", "canonical"] = "all"
    """Which noisy cells enter the likelihood."""
    seed: int = 0
    """Seed of the fit."""


class SynthesisSection(_Section):
    """[synthesis]"""

    datasets: int = 100
    """Number of synthetic datasets m."""
    rows: int | None = None
    """Rows of each; by default as many as the confidential table has."""
    seed: int = 0
    """Seed of the series."""


class AnalysisSection(_Section):
    """[[analysis]]"""

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
    workload: WorkloadSection
    """What is measured."""
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
        """Check the workload against the schema."""
        formulas = (*self.workload.analyses, *(analysis.formula for analysis in self.analysis))
        return Workload.of(schema, self.workload.marginals, formulas if self.workload.analyses else ())

    def source(self) -> str:
        """The confidential source, with a relative path made absolute."""
        source = self.data.source
        return source if "://" in source else str(self.folder / source)


def fit_counts(noisy_counts: NoisyCounts, section: PosteriorSection, progress: Progress = silent) -> Posterior:
    """Fit as a study's [posterior] section says."""
    method = {"auto": None, "laplace": Laplace()}[section.method]
    prior = NormalPrior(stddev=section.prior_stddev)
    return fit(noisy_counts, method, prior=prior, cells=section.cells, seed=section.seed, progress=progress)


def draw(posterior: Posterior, section: SynthesisSection, allow_untrusted: bool = False) -> DrawnDatasets:
    """Draw as a study's [synthesis] section says."""
    return synthesize(posterior, section.datasets, section.rows, seed=section.seed, allow_untrusted=allow_untrusted)


def measure_study(study: Study, release: Release, progress: Progress = silent) -> NoisyCounts:
    """Measure what a study asks for and start its release; a release that is there is never measured again."""
    from noisewise.privacy.budget import Budget
    from noisewise.privacy.measure import measure

    schema = study.load_schema()
    workload = study.load_workload(schema)
    progress("counting and adding noise", 0, 0)
    noisy_counts = measure(
        study.source(), schema, workload, Budget(epsilon=study.privacy.epsilon, delta=study.privacy.delta)
    )
    intended = tuple({"model": analysis.model, "formula": analysis.formula} for analysis in study.analysis)
    release.write_noisy_counts(noisy_counts, intended)
    return noisy_counts


def _explain(problem: Any) -> str:
    location = [str(part) for part in problem["loc"]]
    where = ".".join(location)
    if problem["type"] == "extra_forbidden":
        section = Study.model_fields if len(location) == 1 else _section(location[0])
        known = ["schema" if key == "schema_" else key for key in section if key != "folder"]
        return f"unknown key {where!r}. {did_you_mean(location[-1], known)}"
    if problem["type"] == "missing":
        return f"{where!r} is missing. Add it."
    return f"{where}: {problem['msg']}."


def _section(name: str) -> list[str]:
    field = Study.model_fields.get("schema_" if name == "schema" else name)
    annotation = field.annotation if field else None
    kind = AnalysisSection if name == "analysis" else annotation
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []
