"""The sections of a study file: what each may hold, and what a wrong value is told."""

import dataclasses
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from noisewise.confidential.addresses import holds_secret
from noisewise.errors import DataError, StudyError, did_you_mean
from noisewise.posterior.fit import Method
from noisewise.posterior.hmc import Hmc
from noisewise.posterior.laplace import Laplace
from noisewise.posterior.nuts import Nuts
from noisewise.privacy.selection import Selection
from noisewise.privacy.selections import selection

FIT_METHODS: dict[str, type[Method] | None] = {
    "auto": None,  # `fit` chooses
    "hmc": Hmc,
    "laplace": Laplace,
    "nuts": Nuts,
}
"""The methods of fitting by the names that files and commands use. A new method is one line here."""


class Section(BaseModel):
    """One table of a study file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DataSection(Section):
    """The section [data]."""

    source: str
    """A .csv or .parquet file, or "file.duckdb::table", relative to the study file; or a table on a server, such as
    "postgres://user@host/database::table"."""

    rows: int | None = Field(default=None, ge=2)
    """The public number of rows, for planning; measuring counts them."""

    @field_validator("source")
    @classmethod
    def _without_secret(cls, source: str) -> str:
        if holds_secret(source):
            raise ValueError(DataError.CODES["password-in-source"])
        return source


class SchemaSection(Section):
    """The section [schema]."""

    file: str
    """The schema file; relative to the study file."""


class CapSection(Section):
    """The table `cap` of the section [privacy]."""

    epsilon: float
    """ε of all measurements together."""
    delta: float
    """δ of all measurements together."""


class PrivacySection(Section):
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


class SelectSection(Section):
    """The table `select` of the section [workload]."""

    method: str
    """How marginals are chosen: one of `SELECTIONS`."""
    share: float = 0.1
    """Its own share of the budget."""
    max_cells: int | None = None
    """Largest model to be made, in clique cells."""
    columns: tuple[str, ...] | None = None
    """The columns to tie together; by default all."""
    rounds: int | None = None
    """How many marginals to choose, where the method lets one say."""

    @property
    def chosen_selection(self) -> Selection:
        """The selection as an object."""
        return selection(**self.model_dump(exclude_none=True))


class WorkloadSection(Section):
    """The section [workload]."""

    marginals: tuple[tuple[str, ...], ...] = ()
    """The marginals to measure."""
    analyses: tuple[str, ...] = ()
    """Formulas whose marginals are added."""
    weights: tuple[float, ...] = ()
    """How the budget is divided: one number for each of `marginals`. Weight 4 halves the noise of weight 1."""
    select: SelectSection | None = None
    """How further marginals are chosen privately, such as { method = "mst", share = 0.1 }."""


class PosteriorSection(Section):
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


class SynthesisSection(Section):
    """The section [synthesis]."""

    datasets: int = 100
    """Number of synthetic datasets m."""
    rows: int | None = None
    """Rows of each; by default as many as the confidential table has."""
    seed: int = 0
    """Seed of the series."""


class AnalysisSection(Section):
    """The section [[analysis]]."""

    model: str
    """A family of generalised linear models (binomial, gaussian, poisson, …), ordered-logit or multinomial-logit."""
    formula: str
    """The formula, such as "income ~ age + race"."""
    remedy: Literal["", "drop-huge-variances", "ridge-bootstrap"] = ""
    """What to do where a level is empty in some datasets, so that a coefficient has no finite estimate there."""

    @property
    def written(self) -> dict[str, str]:
        """The analysis as a release names it."""
        return {key: value for key, value in self.model_dump().items() if value}


Settings = TypeVar("Settings", PosteriorSection, SynthesisSection)


def settings(section: type[Settings], **given: Any) -> Settings:
    """One section from options instead of a file; an option that does not fit is a `StudyError`."""
    try:
        return section(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        option = str(problem["loc"][0]).replace("_", "-")
        raise StudyError(f"--{option} is {problem['input']!r}: {said(problem)}") from None


def said(problem: Any) -> str:
    """A problem in one sentence: ours as they are, pydantic's with the full stop they lack."""
    message = str(problem["msg"])
    ours = "Value error, "
    return message.removeprefix(ours) if message.startswith(ours) else f"{message}."
