"""What a certificate says, as it is written into a release."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Word = Literal["holds", "doubtful", "fails"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LevelCoverage(_Record):
    """How often intervals of one nominal level held the truth."""

    nominal: float
    """The level the intervals promise."""
    hits: int
    """Repeats whose interval held the truth."""
    repeats: int
    """Repeats that gave an interval."""
    low: float
    """Lower end of the 95 % band for the true coverage (Clopper and Pearson)."""
    high: float
    """Upper end."""
    reference: float
    """The share of the intervals without privacy that held the truth."""
    width_ratio: float
    """Median width, over that of the interval without privacy."""

    @property
    def coverage(self) -> float:
        """The share that held the truth."""
        return self.hits / self.repeats if self.repeats else 0.0


class CertifiedTerm(_Record):
    """One term of an analysis: its verdict, and what it rests on."""

    term: str
    """The estimand's name."""
    verdict: Word
    """Whether its intervals may be relied on."""
    reasons: tuple[str, ...] = ()
    """Why not, one sentence each; empty where it holds."""
    supported: bool | None
    """Whether its own columns were measured together; None if unknown."""
    levels: tuple[LevelCoverage, ...]
    """Coverage in populations that follow the release's model."""
    stressed: tuple[LevelCoverage, ...] = ()
    """Coverage in populations with an association that was not measured; empty where everything was measured."""
    truth: float
    """Mean of the estimand over the populations."""
    bias: float
    """Mean of estimate less truth."""
    bias_stderr: float
    """Its Monte Carlo standard error."""
    stderr: float
    """Median standard error of the pooled estimate."""
    fallbacks: int
    """Repeats in which pooling needed a fallback."""
    cautions: int
    """Repeats in which pooling asked for care, such as very few degrees of freedom."""


class CertifiedAnalysis(_Record):
    """One analysis."""

    title: str
    """Its name."""
    terms: tuple[CertifiedTerm, ...]
    """Its terms."""
    failed: int = 0
    """Repeats in which it could not be pooled."""
    failure: str = ""
    """Why, in the first of them."""
    gaps: tuple[str, ...] = ()
    """What it rests on that was not measured together, one sentence each."""
    stress: str = ""
    """The association that was added to populations to try this; empty where there is no gap."""
    truth: str
    """How the truth of a population was computed."""


class Certificate(_Record):
    """The coverage certificate of a release: whether its intervals would cover, found out without its data."""

    format: Literal["noisewise-certificate"] = "noisewise-certificate"
    """Marks the file."""
    version: Literal[1] = 1
    """Version of the format."""
    noisy_counts_hash: str
    """The noisy counts it was made for."""
    posterior_hash: str
    """SHA-256 of the posterior's draws it was made from."""
    repeats: int = Field(ge=1)
    """Rehearsals in populations that follow the release's model."""
    stressed: int = 0
    """Rehearsals in populations with an association that was not measured."""
    untrusted: int = 0
    """Rehearsals whose posterior failed its checks."""
    datasets: int
    """Synthetic datasets of each rehearsal."""
    rows: int
    """Rows of each table and dataset."""
    method: str
    """How the rehearsals were fitted."""
    seed: int
    """Seed of everything."""
    software: str
    """The version of noisewise that made it."""
    analyses: tuple[CertifiedAnalysis, ...]
    """What was certified."""

    @property
    def words(self) -> dict[str, int]:
        """How many terms hold, are doubtful and fail."""
        found = [term.verdict for analysis in self.analyses for term in analysis.terms]
        return {word: found.count(word) for word in ("holds", "doubtful", "fails")}

    def to_json(self) -> bytes:
        """The certificate as it is written: equal certificates give equal bytes."""
        return (self.model_dump_json(indent=1) + "\n").encode()
