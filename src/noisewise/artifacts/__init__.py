"""A release: the folder that may be published, and what is needed to read and check it.

    manifest.json            promise, provenance, verdict, and the SHA-256 of every other file
    schema.toml              the public schema
    noisy_counts.parquet     every measured cell with its noise
    posterior.npz            draws of the parameters, plain arrays
    synthetic/dataset-000.parquet …
    certificate.json         whether intervals from the release cover, where that was rehearsed
    report.html, report.json for people, and the same for programs

Nothing is pickled. Content, not the moment or the machine, decides the bytes: two releases from the same noisy
counts and seed are identical. Readers check names, sizes and shapes before they allocate.
"""

from noisewise.artifacts.checks import damage
from noisewise.artifacts.files import file_hash
from noisewise.artifacts.manifest import (
    MANIFEST,
    VERSION,
    Manifest,
    MarginalRecord,
    PosteriorRecord,
    SynthesisRecord,
    read_manifest,
)
from noisewise.artifacts.release import Release, read_release

__all__ = [
    "MANIFEST",
    "VERSION",
    "Manifest",
    "MarginalRecord",
    "PosteriorRecord",
    "Release",
    "SynthesisRecord",
    "damage",
    "file_hash",
    "read_manifest",
    "read_release",
]
