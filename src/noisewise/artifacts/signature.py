"""A detached signature over a release's manifest, made with a key the holder has already: OpenSSH does the work.

The manifest holds the hash of every other file, so that its signature covers the whole release. A stage that changes
the release changes the manifest: sign last.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from noisewise.artifacts.manifest import MANIFEST
from noisewise.errors import ReleaseError

NAMESPACE = "noisewise-release"
"""What the signature is for: OpenSSH keeps signatures for different purposes apart by it."""
SIGNATURE = f"{MANIFEST}.sig"
_SIGNATURE_BYTES = 100_000
_NOT_THIS = (
    "The signature is not one of this manifest: the release was changed after it was signed. Do not trust it; if you "
    "hold it and changed it yourself, sign it again."
)


@dataclass(frozen=True, kw_only=True)
class Signed:
    """What is known about a release's signature."""

    by: str
    """The signer's name in the list of allowed signers; or the key's fingerprint, where there is no such list."""
    trusted: bool
    """Whether the signer is in a list of allowed signers."""


def sign(folder: Path, key: Path) -> Path:
    """Sign a release's manifest with an SSH key (private, or public with an agent); returns the signature's path."""
    target = folder / SIGNATURE
    target.unlink(missing_ok=True)
    done = _keygen("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(folder / MANIFEST))
    if done.returncode or not target.is_file():
        raise ReleaseError(f"ssh-keygen could not sign with {key}: {_words(done)}. Check the key.")
    return target


def signature(folder: Path, allowed_signers: Path | None = None) -> Signed | None:
    """Check a release's signature; None if there is none and none was asked for.

    `allowed_signers` is a file of names and public keys as `ssh-keygen` reads it. Without one it is only checked that
    the signature fits the manifest: by whom it is, only the key's fingerprint tells.
    """
    path = folder / SIGNATURE
    if not path.exists():
        if allowed_signers is None:
            return None
        raise ReleaseError(f"{folder} is not signed. Ask its holder for {SIGNATURE}, or leave out --allowed-signers.")
    if path.is_symlink() or path.stat().st_size > _SIGNATURE_BYTES:
        raise ReleaseError(f"{path} is no signature: a link, or too large. Do not trust this release.")
    content = (folder / MANIFEST).read_bytes()
    if allowed_signers is None:
        done = _keygen("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(path), content=content)
        if done.returncode:
            raise ReleaseError(f"{_NOT_THIS} ({_words(done)})")
        return Signed(by=next((w for w in _words(done).split() if w.startswith("SHA256:")), "unknown"), trusted=False)
    return Signed(by=_allowed(path, content, allowed_signers), trusted=True)


def _allowed(path: Path, content: bytes, allowed_signers: Path) -> str:
    if not allowed_signers.is_file():
        raise ReleaseError(f"There is no list of allowed signers at {allowed_signers}. Check the path.")
    found = _keygen("-Y", "find-principals", "-s", str(path), "-f", str(allowed_signers))
    names = found.stdout.decode("utf-8", "replace").split()
    if found.returncode or not names:
        raise ReleaseError(f"The release is signed by a key that {allowed_signers} does not list. Do not trust it.")
    listed = ("-f", str(allowed_signers), "-I", names[0])
    done = _keygen("-Y", "verify", *listed, "-n", NAMESPACE, "-s", str(path), content=content)
    if done.returncode:
        raise ReleaseError(f"{_NOT_THIS} ({_words(done)})")
    return names[0]


def _keygen(*words: str, content: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = which("ssh-keygen")
    if program is None:
        raise ReleaseError("Signatures need ssh-keygen, which is not here. Install OpenSSH 8.2 or later.")
    return subprocess.run(  # noqa: S603 - OpenSSH, with paths of the user's own
        [program, *words], input=content, capture_output=True, check=False
    )


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join((done.stdout + done.stderr).decode("utf-8", "replace").split())
