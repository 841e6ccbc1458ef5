"""`damage`: whether a release is whole, unchanged, and agrees with itself."""

from noisewise.artifacts.files import file_hash
from noisewise.artifacts.manifest import MANIFEST, Manifest
from noisewise.artifacts.release import Release
from noisewise.errors import NoisewiseError


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
        release.certificate()
    except NoisewiseError as error:
        findings.append(str(error))
    return findings
