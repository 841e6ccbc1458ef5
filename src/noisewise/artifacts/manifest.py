"""What a release says about itself, and the only way its manifest is read."""

import json
import re
from pathlib import Path
from typing import Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from noisewise.errors import ReleaseError
from noisewise.noisy_counts import PrivacyStatement
from noisewise.posterior.result import FitRecord, Verdict
from noisewise.workload import Marginal

VERSION = 1
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 64 << 20
_MEMBER = re.compile(r"(synthetic/)?[A-Za-z0-9_-]+\.[a-z]+")


class MarginalRecord(BaseModel):
    """One measured marginal and its noise."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    columns: Marginal
    """The columns."""
    noise_stddev: float
    """Standard deviation of the noise in every cell."""


class PosteriorRecord(BaseModel):
    """How the posterior was made, and whether it may be used."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    record: FitRecord
    """Method, settings, prior and seed."""
    verdict: Verdict
    """Whether it may be used."""


class SynthesisRecord(BaseModel):
    """How the synthetic datasets were drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    datasets: int = Field(ge=1)
    """Number of datasets m."""
    rows: int = Field(ge=1)
    """Rows of each."""
    seed: int
    """Seed of the series."""


class Manifest(BaseModel):
    """What a release says about itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal["noisewise-release"] = "noisewise-release"
    """Marks the file."""
    version: Literal[1] = 1
    """Version of the format."""
    table: str
    """The schema's name for the table."""
    rows: int = Field(ge=1)
    """Rows of the confidential table; public."""
    privacy: PrivacyStatement
    """The promise."""
    marginals: tuple[MarginalRecord, ...]
    """What was measured, with how much noise."""
    schema_hash: str
    """SHA-256 of the schema's content."""
    noisy_counts_hash: str
    """SHA-256 of the noisy counts' content."""
    software: dict[str, str]
    """Versions of what made the release."""
    posterior: PosteriorRecord | None = None
    """The posterior's provenance and verdict, once there is one."""
    synthesis: SynthesisRecord | None = None
    """The datasets' provenance, once there are some."""
    analyses: tuple[dict[str, str], ...] = ()
    """The analyses the study intends."""
    files: dict[str, str]
    """SHA-256 of every other file of the release."""

    def to_json(self) -> bytes:
        """The manifest as it is written: equal manifests give equal bytes."""
        content = self.model_dump(mode="json")
        content["files"] = dict(sorted(content["files"].items()))
        return (json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()


def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest: its size, its JSON, its version, its entries and the names it lists."""
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise ReleaseError(f"{path} is larger than any manifest. This is not a noisewise release.")
        content = json.loads(path.read_text("utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise ReleaseError(f"{path.parent} holds no {MANIFEST}. Give the folder of a noisewise release.") from None
    except (OSError, ValueError, RecursionError):
        raise ReleaseError(f"{path} is not readable JSON: truncated or edited. Get a fresh copy.") from None
    if isinstance(content, dict) and content.get("version", VERSION) != VERSION:
        raise ReleaseError(
            f"{path} is of format version {content['version']!r}; this noisewise reads version {VERSION}. "
            "Install the noisewise that made the release."
        )
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReleaseError(f"{path} is not a valid manifest ({where}: {first['msg']}). Get a fresh copy.") from None
    for name in manifest.files:
        if not _MEMBER.fullmatch(name):
            raise ReleaseError(f"{path} lists {name!r}, which is not a name a release may hold. Do not trust it.")
    return manifest


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
