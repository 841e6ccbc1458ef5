"""A release: the folder that may be published, and what is needed to read and check it.

    manifest.json            promise, provenance, verdict, and the SHA-256 of every other file
    schema.toml              the public schema
    noisy_counts.parquet     every measured cell with its noise
    posterior.npz            draws of the parameters, plain arrays
    synthetic/dataset-000.parquet …
    report.html              for people

Nothing is pickled. Content, not the moment or the machine, decides the bytes: two releases from the same noisy
counts and seed are identical. Readers check names, sizes and shapes before they allocate.
"""

import hashlib
import io
import json
import math
import os
import re
import shutil
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from noisewise.archives import unpacked
from noisewise.errors import NoisewiseError, ReleaseError
from noisewise.noisy_counts import NoisyCounts, PrivacyStatement
from noisewise.posterior.result import FitRecord, Posterior, Verdict, model_of
from noisewise.progress import Progress, silent
from noisewise.schema import Schema
from noisewise.synthesis import DrawnDatasets, StoredDatasets, write_datasets
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


class Release:
    """A release folder. It keeps no state: every method reads or writes files."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def exists(self) -> bool:
        """Whether there is a manifest in the folder."""
        return (self.folder / MANIFEST).is_file()

    # Reading

    def manifest(self) -> Manifest:
        """Read and check the manifest."""
        path = self._path(MANIFEST)
        try:
            if path.stat().st_size > MAX_MANIFEST_BYTES:
                raise ReleaseError(f"{path} is larger than any manifest. This is not a noisewise release.")
            content = json.loads(path.read_text("utf-8"), parse_constant=_refuse_constant)
        except FileNotFoundError:
            raise ReleaseError(f"{self.folder} holds no {MANIFEST}. Give the folder of a noisewise release.") from None
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

    def schema(self) -> Schema:
        """Read the public schema."""
        return self._schema(self.manifest())

    def noisy_counts(self) -> NoisyCounts:
        """Read the noisy counts; their content must match the manifest."""
        manifest = self.manifest()
        schema = self._schema(manifest)
        cells = sum(math.prod(schema.shape(record.columns)) for record in manifest.marginals)
        table = _read_table(self._content(manifest, "noisy_counts.parquet"), "noisy_counts.parquet", cells)
        counts = NoisyCounts.from_arrow(table, schema, manifest.rows, manifest.privacy)
        if counts.hash != manifest.noisy_counts_hash:
            raise ReleaseError("The noisy counts are not those the manifest describes. Run `noisewise verify`.")
        return counts

    def posterior(self) -> Posterior:
        """Read the posterior."""
        manifest = self.manifest()
        if manifest.posterior is None:
            raise ReleaseError(f"{self.folder} holds no posterior yet. Run `noisewise fit {self.folder}`.")
        noisy_counts = self.noisy_counts()
        theta = _read_theta(self._content(manifest, "posterior.npz"), model_of(noisy_counts).parameters)
        return Posterior(
            noisy_counts=noisy_counts,
            theta=theta,
            verdict=manifest.posterior.verdict,
            record=manifest.posterior.record,
        )

    def datasets(self) -> StoredDatasets:
        """The synthetic datasets; each file is read when it is asked for."""
        manifest = self.manifest()
        if manifest.synthesis is None:
            raise ReleaseError(
                f"{self.folder} holds no synthetic datasets yet. Run `noisewise synthesize {self.folder}`."
            )
        names = sorted(name for name in manifest.files if name.startswith("synthetic/"))
        if len(names) != manifest.synthesis.datasets:
            raise ReleaseError(
                f"The manifest speaks of {manifest.synthesis.datasets} synthetic datasets and lists {len(names)}. "
                "Get a fresh copy."
            )
        return StoredDatasets(
            paths=tuple(self._path(name) for name in names),
            schema=self._schema(manifest),
            rows=manifest.synthesis.rows,
            original_rows=manifest.rows,
            marginals=tuple(record.columns for record in manifest.marginals),
            warnings=manifest.posterior.verdict.reasons if manifest.posterior else (),
        )

    def _schema(self, manifest: Manifest) -> Schema:
        text = self._content(manifest, "schema.toml").decode("utf-8", "replace")
        return Schema.from_toml(text, source="schema.toml")

    def _content(self, manifest: Manifest, name: str) -> bytes:
        """The bytes of a file that the manifest lists, provided they are the bytes that were written."""
        try:
            content = self._path(name).read_bytes()
        except FileNotFoundError:
            raise ReleaseError(f"{self.folder / name} is missing. Get a complete copy of the release.") from None
        except OSError as error:
            raise ReleaseError(f"Cannot read {self.folder / name}: {error.strerror}. Check the folder.") from None
        if manifest.files.get(name) != hashlib.sha256(content).hexdigest():
            raise ReleaseError(f"{self.folder / name} was changed after it was written. Get a fresh copy.")
        return content

    def _path(self, name: str) -> Path:
        """Where a file of the release is; a link could lead anywhere and is refused."""
        path = self.folder / name
        if path.is_symlink() or (path.parent != self.folder and path.parent.is_symlink()):
            raise ReleaseError(f"{path} is a symbolic link; a release holds plain files only. Get a fresh copy.")
        return path

    # Writing

    def write_noisy_counts(self, noisy_counts: NoisyCounts, analyses: tuple[dict[str, str], ...] = ()) -> None:
        """Start a release from noisy counts."""
        if self.exists():
            raise ReleaseError(
                f"{self.folder} already holds a release. Give another folder; a release is never measured over."
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ReleaseError(f"Cannot make the folder {self.folder}: {error.strerror}. Give another.") from None
        _write(self.folder / "schema.toml", noisy_counts.schema.to_toml().encode())
        buffer = io.BytesIO()
        pq.write_table(noisy_counts.to_arrow(), buffer, compression="zstd")
        _write(self.folder / "noisy_counts.parquet", buffer.getvalue())
        self._write_manifest(
            Manifest(
                table=noisy_counts.schema.name,
                rows=noisy_counts.rows,
                privacy=noisy_counts.privacy,
                marginals=tuple(
                    MarginalRecord(columns=m.marginal, noise_stddev=m.stddev) for m in noisy_counts.measurements
                ),
                schema_hash=noisy_counts.schema.hash,
                noisy_counts_hash=noisy_counts.hash,
                software=_software("noisewise", "opendp"),
                analyses=analyses,
                files=self._hashes("schema.toml", "noisy_counts.parquet"),
            )
        )

    def write_posterior(self, posterior: Posterior) -> None:
        """Add a posterior, replacing one that is there together with what was drawn from it."""
        content = _npz({"theta": posterior.theta})
        manifest = self._withdraw(self.manifest(), ("posterior.npz", "synthetic/", "report.html"))
        _write(self.folder / "posterior.npz", content)
        update = {
            "posterior": PosteriorRecord(record=posterior.record, verdict=posterior.verdict),
            "software": manifest.software | _software("noisewise", "jax", "numpy"),
            "files": manifest.files | self._hashes("posterior.npz"),
        }
        self._write_manifest(manifest.model_copy(update=update))

    def write_datasets(self, datasets: DrawnDatasets, progress: Progress = silent) -> None:
        """Draw and add the synthetic datasets, replacing those that are there; all of them or none."""
        with _folder_in_one_piece(self.folder / "synthetic") as folder:
            hashes = {f"synthetic/{path.name}": file_hash(path) for path in write_datasets(datasets, folder, progress)}
            manifest = self._withdraw(self.manifest(), ("synthetic/", "report.html"))
        record = SynthesisRecord(datasets=len(datasets), rows=datasets.rows, seed=datasets.seed)
        self._write_manifest(manifest.model_copy(update={"synthesis": record, "files": manifest.files | hashes}))

    def write_report(self, html: str) -> Path:
        """Add the report, replacing one that is there."""
        manifest = self.manifest()
        _write(self.folder / "report.html", html.encode())
        self._write_manifest(manifest.model_copy(update={"files": manifest.files | self._hashes("report.html")}))
        return self.folder / "report.html"

    def _hashes(self, *names: str) -> dict[str, str]:
        return {name: file_hash(self.folder / name) for name in names}

    def _withdraw(self, manifest: Manifest, prefixes: tuple[str, ...]) -> Manifest:
        """Take files off the manifest first and off the disk then: at no moment does it list what is not there."""
        gone = [name for name in manifest.files if name.startswith(prefixes)]
        if not gone:
            return manifest
        update: dict[str, Any] = {
            "files": {k: v for k, v in manifest.files.items() if k not in gone},
            "synthesis": None,
        }
        if "posterior.npz" in gone:
            update["posterior"] = None
        manifest = manifest.model_copy(update=update)
        self._write_manifest(manifest)
        for name in gone:
            self._path(name).unlink(missing_ok=True)
        with suppress(OSError):  # not there, or it holds something of the user's
            (self.folder / "synthetic").rmdir()
        return manifest

    def _write_manifest(self, manifest: Manifest) -> None:
        content = manifest.model_dump(mode="json")
        content["files"] = dict(sorted(content["files"].items()))
        _write(
            self.folder / MANIFEST, (json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode()
        )


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage(release: Release) -> list[str]:
    """What does not add up between a release's manifest and its files; empty if all is well."""
    manifest = release.manifest()
    findings = []
    for name, expected in manifest.files.items():
        path = release.folder / name
        if not path.is_file():
            findings.append(f"{name} is missing.")
        elif file_hash(path) != expected:
            findings.append(f"{name} was changed after it was written.")
    listed = {*manifest.files, MANIFEST}
    for path in sorted(release.folder.rglob("*")):
        name = path.relative_to(release.folder).as_posix()
        if path.is_symlink():
            findings.append(f"{name} is a symbolic link; a release holds plain files only.")
        elif not path.is_dir() and name not in listed and not name.startswith("manifest.json.sig"):
            findings.append(f"{name} is not listed in the manifest.")
    if findings:
        return findings
    return _contradictions(release, manifest)


def _contradictions(release: Release, manifest: Manifest) -> list[str]:
    """Whether the files' content agrees with what the manifest says of them."""
    findings = []
    try:
        schema = release.schema()
        if schema.hash != manifest.schema_hash:
            findings.append("schema.toml is not the schema the manifest describes.")
        counts = release.noisy_counts()
        described = tuple((record.columns, record.noise_stddev) for record in manifest.marginals)
        if described != tuple((m.marginal, m.stddev) for m in counts.measurements):
            findings.append("The marginals or their noise differ between manifest and noisy counts.")
        if manifest.posterior is not None:
            release.posterior()
        if manifest.synthesis is not None:
            datasets = release.datasets()
            if (len(datasets), datasets.rows) != (manifest.synthesis.datasets, manifest.synthesis.rows):
                findings.append("The number or size of the synthetic datasets is not what the manifest says.")
    except NoisewiseError as error:
        findings.append(str(error))
    return findings


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _read_table(content: bytes, name: str, rows: int) -> pa.Table:
    """Read a Parquet file that must hold so many rows; checked before anything is unpacked."""
    try:
        if pq.read_metadata(pa.BufferReader(content)).num_rows != rows:
            raise ReleaseError(f"{name} does not hold the {rows:,} rows it should. Get a fresh copy.")
        return pq.read_table(pa.BufferReader(content))
    except (OSError, ValueError, pa.ArrowException):
        raise ReleaseError(f"{name} is not readable: truncated or edited. Get a fresh copy.") from None


# What a damaged zip archive or array header makes zipfile and NumPy raise.
_DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


def _read_theta(content: bytes, parameters: int) -> np.ndarray:
    """Read the draws; what the headers claim is checked against the file's true size before anything is allocated."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open("theta.npy") as member:
            entry = archive.getinfo("theta.npy")
            np.lib.format.read_magic(member)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
            plain = entry.compress_type == zipfile.ZIP_STORED and dtype == np.float64 and not fortran
            if not plain or len(shape) != 3 or shape[2] != parameters or min(shape) < 1:
                raise ValueError("not an array of draws")
            values = math.prod(shape) * 8
            if values > len(content) or not 0 <= entry.file_size - values < 4096:
                raise ValueError("the sizes contradict each other")
            return np.frombuffer(member.read(values), np.float64).reshape(shape)
    except _DAMAGED:
        raise ReleaseError(
            "posterior.npz is not a posterior of this model: truncated or edited. Get a fresh copy."
        ) from None


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    """An .npz whose bytes depend on the arrays alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in sorted(arrays.items()):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue())
    return buffer.getvalue()


def _software(*packages: str) -> dict[str, str]:
    return {package: version(package) for package in packages}


def _write(path: Path, content: bytes) -> None:
    """Write a file in one piece: readers see the old content or the new, never half of it."""
    temporary = path.with_name(path.name + ".partial")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _folder_in_one_piece(folder: Path) -> Iterator[Path]:
    """Fill a folder beside the wanted one and swap it in at the end; leave nothing behind on failure."""
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        yield partial
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def read_release(place: str | Path) -> Release:
    """Open a release, a folder or a zip file of one; the manifest is checked at once.

    A zip file is unpacked into a temporary folder that goes away when Python ends.
    """
    path = Path(place)
    release = Release(unpacked(path, MANIFEST) if path.suffix.lower() == ".zip" else path)
    release.manifest()
    return release
