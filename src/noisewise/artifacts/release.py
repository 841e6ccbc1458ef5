"""The folder itself: reading and writing a release, stage by stage."""

import hashlib
import io
import json
import math
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import ValidationError

from noisewise.archives import unpacked
from noisewise.artifacts.contents import npz, read_table, read_theta
from noisewise.artifacts.files import file_hash, folder_in_one_piece, write
from noisewise.artifacts.manifest import (
    MANIFEST,
    Manifest,
    MarginalRecord,
    PosteriorRecord,
    SynthesisRecord,
    read_manifest,
)
from noisewise.artifacts.signature import SIGNATURE
from noisewise.certificate import Certificate
from noisewise.errors import ReleaseError
from noisewise.noisy_counts import NoisyCounts
from noisewise.posterior.result import Posterior, model_of
from noisewise.progress import Progress, silent
from noisewise.schema import Schema
from noisewise.synthesis import DrawnDatasets, StoredDatasets, write_datasets

CERTIFICATE = "certificate.json"
REPORT = ("report.html", "report.json")


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
        return read_manifest(self._path(MANIFEST))

    def schema(self) -> Schema:
        """Read the public schema."""
        return self._schema(self.manifest())

    def noisy_counts(self) -> NoisyCounts:
        """Read the noisy counts; their content must match the manifest."""
        manifest = self.manifest()
        schema = self._schema(manifest)
        cells = sum(math.prod(schema.shape(record.columns)) for record in manifest.marginals)
        table = read_table(self._content(manifest, "noisy_counts.parquet"), "noisy_counts.parquet", cells)
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
        theta = read_theta(self._content(manifest, "posterior.npz"), model_of(noisy_counts).parameters)
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

    def certificate(self) -> Certificate | None:
        """Read the coverage certificate; None if there is none."""
        manifest = self.manifest()
        if CERTIFICATE not in manifest.files:
            return None
        try:
            certificate = Certificate.model_validate_json(self._content(manifest, CERTIFICATE))
        except ValidationError:
            raise ReleaseError(f"{CERTIFICATE} is not a certificate: edited. Get a fresh copy.") from None
        if certificate.noisy_counts_hash != manifest.noisy_counts_hash:
            raise ReleaseError(f"{CERTIFICATE} belongs to another release. Get a fresh copy.")
        return certificate

    def report_content(self) -> dict[str, Any] | None:
        """What report.json holds; None if there is none."""
        manifest = self.manifest()
        name = REPORT[1]
        return dict(json.loads(self._content(manifest, name))) if name in manifest.files else None

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
        write(self.folder / "schema.toml", noisy_counts.schema.to_toml().encode())
        buffer = io.BytesIO()
        pq.write_table(noisy_counts.to_arrow(), buffer, compression="zstd")
        write(self.folder / "noisy_counts.parquet", buffer.getvalue())
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
        self.refuse_if_signed()
        content = npz({"theta": posterior.theta})
        manifest = self._withdraw(self.manifest(), ("posterior.npz", "synthetic/", CERTIFICATE, *REPORT))
        write(self.folder / "posterior.npz", content)
        update = {
            "posterior": PosteriorRecord(record=posterior.record, verdict=posterior.verdict),
            "software": manifest.software | _software("noisewise", "jax", "numpy"),
            "files": manifest.files | self._hashes("posterior.npz"),
        }
        self._write_manifest(manifest.model_copy(update=update))

    def write_datasets(self, datasets: DrawnDatasets, progress: Progress = silent) -> None:
        """Draw and add the synthetic datasets, replacing those that are there; all of them or none."""
        self.refuse_if_signed()
        with folder_in_one_piece(self.folder / "synthetic") as folder:
            hashes = {f"synthetic/{path.name}": file_hash(path) for path in write_datasets(datasets, folder, progress)}
            manifest = self._withdraw(self.manifest(), ("synthetic/", *REPORT))
        record = SynthesisRecord(datasets=len(datasets), rows=datasets.rows, seed=datasets.seed)
        self._write_manifest(manifest.model_copy(update={"synthesis": record, "files": manifest.files | hashes}))

    def write_report(self, html: str, content: bytes = b"") -> Path:
        """Add the report, replacing one that is there; `content` is the same as JSON. Returns the page's path."""
        self.refuse_if_signed()
        files = {"report.html": html.encode()} | ({"report.json": content} if content else {})
        manifest = self._withdraw(self.manifest(), REPORT)
        for name, written in files.items():
            write(self.folder / name, written)
        self._write_manifest(manifest.model_copy(update={"files": manifest.files | self._hashes(*files)}))
        return self.folder / "report.html"

    def write_certificate(self, certificate: Certificate) -> Path:
        """Attach a coverage certificate, replacing one that is there. Returns its path."""
        self.refuse_if_signed()
        if certificate.posterior_hash != self.posterior().hash:
            raise ReleaseError("The certificate is of another posterior than the release's. Certify it again.")
        manifest = self._withdraw(self.manifest(), (CERTIFICATE, *REPORT))
        write(self.folder / CERTIFICATE, certificate.to_json())
        self._write_manifest(manifest.model_copy(update={"files": manifest.files | self._hashes(CERTIFICATE)}))
        return self.folder / CERTIFICATE

    def refuse_if_signed(self) -> None:
        """Refuse to change a signed release: whoever checks its signature afterwards would be told not to trust it."""
        if (self.folder / SIGNATURE).exists():
            raise ReleaseError(
                f"{self.folder} is signed, and this would change it: its signature would be void. Remove {SIGNATURE} "
                "first, and sign again afterwards (`noisewise sign`)."
            )

    def _hashes(self, *names: str) -> dict[str, str]:
        return {name: file_hash(self.folder / name) for name in names}

    def _withdraw(self, manifest: Manifest, prefixes: tuple[str, ...]) -> Manifest:
        """Take files off the manifest first and off the disk then: at no moment does it list what is not there."""
        gone = [name for name in manifest.files if name.startswith(prefixes)]
        if not gone:
            return manifest
        update: dict[str, Any] = {
            "files": {k: v for k, v in manifest.files.items() if k not in gone},
        }
        if any(name.startswith("synthetic/") for name in gone):
            update["synthesis"] = None
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
        write(self.folder / MANIFEST, manifest.to_json())


def _software(*packages: str) -> dict[str, str]:
    return {package: version(package) for package in packages}


def read_release(place: str | Path) -> Release:
    """Open a release, a folder or a zip file of one; the manifest is checked at once.

    A zip file is unpacked into a temporary folder that goes away when Python ends.
    """
    path = Path(place)
    release = Release(unpacked(path, MANIFEST) if path.suffix.lower() == ".zip" else path)
    release.manifest()
    return release
