"""A study: one TOML file that says what to read, protect, measure, fit, draw and analyse."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from noisewise.errors import StudyError, did_you_mean
from noisewise.privacy.ledger import Ledger, lineage_of
from noisewise.privacy.selection import Selection
from noisewise.schema import Schema
from noisewise.study.sections import (
    AnalysisSection,
    DataSection,
    PosteriorSection,
    PrivacySection,
    SchemaSection,
    Section,
    SelectSection,
    SynthesisSection,
    WorkloadSection,
    said,
)
from noisewise.workload import Workload, marginals_for


class Study(Section):
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
        section = self.workload
        analyses = section.analyses if section.marginals or section.analyses else intended
        if section.select is not None and not (section.marginals or analyses):
            return Workload(marginals=())
        return Workload.of(schema, section.marginals, analyses, section.weights)

    def selection(self) -> Selection | None:
        """How further marginals are chosen; None if what the workload names is all."""
        return None if self.workload.select is None else self.workload.select.chosen_selection

    def reading(self, source: str | None) -> "Study":
        """The same study on another source, whose relative path starts in the current folder; None changes nothing."""
        if source is None:
            return self
        absolute = source if "://" in source else str(Path(source).resolve())
        try:
            return self.model_copy(update={"data": DataSection(source=absolute, rows=self.data.rows)})
        except ValidationError as error:
            raise StudyError(said(error.errors()[0])) from None

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


def selecting(study: Study, method: str, share: float) -> Study:
    """The same study with another selection of marginals."""
    section = SelectSection(method=method, share=share)
    _ = section.chosen_selection  # an unknown method is told at once
    return study.model_copy(update={"workload": study.workload.model_copy(update={"select": section})})


def _explain(problem: Any) -> str:
    location = [str(part) for part in problem["loc"]]
    where = ".".join(location)
    if problem["type"] == "extra_forbidden":
        section = Study.model_fields if len(location) == 1 else _section(location[0])
        known = ["schema" if key == "schema_" else key for key in section if key != "folder"]
        return f"unknown key {where!r}. {did_you_mean(location[-1], known)}"
    if problem["type"] == "missing":
        return f"{where!r} is missing. Add it."
    return f"{where}: {said(problem)}"


def _section(name: str) -> list[str]:
    field = Study.model_fields.get("schema_" if name == "schema" else name)
    annotation = field.annotation if field else None
    kind = AnalysisSection if name == "analysis" else annotation
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []
