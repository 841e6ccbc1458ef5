"""Zip files from others: unpacked into a temporary folder, and only where that is safe.

An archive may name files outside its folder, hold links, or unpack to far more than it weighs. Names, kinds and
sizes are therefore checked before anything is written, and the sizes once more while writing.
"""

import atexit
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from noisewise.errors import ReleaseError

MAX_BYTES = 20 << 30
"""Most that an archive may unpack to."""
MAX_RATIO = 200
"""Most by which an archive may grow; columns of few levels are compressed already."""
MAX_FILES = 20_000
_BLOCK = 1 << 20


def unpacked(path: Path, landmark: str, *, max_bytes: int = MAX_BYTES) -> Path:
    """The folder of the archive's content that holds the file `landmark`, at the top or one folder below.

    It is temporary and removed when Python ends.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            _check(path, members, max_bytes)
            root = _root(path, members, landmark)
            folder = Path(tempfile.mkdtemp(prefix="noisewise-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            for member in members:
                _write(archive, member, folder)
    except FileNotFoundError:
        raise ReleaseError(f"{path} does not exist. Give a release: a folder or a zip file.") from None
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError):
        raise ReleaseError(f"{path} is not a readable zip file: truncated, encrypted or damaged.") from None
    return folder / root


def _check(path: Path, members: list[zipfile.ZipInfo], max_bytes: int) -> None:
    names = [member.filename for member in members]
    if len(names) > MAX_FILES or len(set(names)) < len(names):
        raise ReleaseError(f"{path} holds {len(names):,} files, or one name twice: no release does. Do not trust it.")
    for member in members:
        parts = PurePosixPath(member.filename).parts
        kind = stat.S_IFMT(member.external_attr >> 16)
        if "\\" in member.filename or ":" in member.filename or ".." in parts or member.filename.startswith("/"):
            raise ReleaseError(f"{path} holds {member.filename!r}, a name outside its folder. Do not trust it.")
        if kind not in (0, stat.S_IFREG):
            raise ReleaseError(f"{path} holds {member.filename!r}, which is a link or device. Do not trust it.")
    total = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if total > max_bytes or total > MAX_RATIO * packed + _BLOCK:
        raise ReleaseError(
            f"{path} would unpack to {total:,} bytes from {packed:,}. Unpack it yourself if you trust it, and give the "
            "folder."
        )


def _root(path: Path, members: list[zipfile.ZipInfo], landmark: str) -> str:
    found = [PurePosixPath(member.filename) for member in members]
    tops = sorted(str(name.parent) for name in found if name.name == landmark and len(name.parts) <= 2)
    if not tops:
        raise ReleaseError(f"{path} holds no {landmark}. Give a zip file of a noisewise release.")
    if len(tops) > 1:
        raise ReleaseError(f"{path} holds several releases: {', '.join(tops)}. Unpack it and give one folder.")
    return tops[0]


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> None:
    """Unpack one file; stop when it is longer than it said."""
    target = folder / member.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, target.open("wb") as file:
        written = 0
        while block := source.read(_BLOCK):
            written += len(block)
            if written > member.file_size:
                raise zipfile.BadZipFile
            file.write(block)
