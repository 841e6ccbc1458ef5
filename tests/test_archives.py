"""A release in a zip file is read like a folder, and a hostile zip file is refused before anything is written."""

import stat
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from measured import measured_release
from noisewise.archives import unpacked
from noisewise.artifacts import read_release
from noisewise.cli.app import app
from noisewise.errors import ReleaseError
from released import make_release


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return make_release(tmp_path_factory.mktemp("release") / "people", datasets=3)


def zipped(release, path, prefix=""):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(release.folder.rglob("*")):
            if file.is_file():
                archive.write(file, prefix + file.relative_to(release.folder).as_posix())
    return path


@pytest.mark.parametrize("prefix", ["", "people-release/"], ids=["at the top", "in a folder"])
def test_a_zip_file_reads_like_its_folder(release, tmp_path, prefix):
    again = read_release(zipped(release, tmp_path / "r.zip", prefix))

    assert again.manifest() == release.manifest()
    assert again.datasets()[2].equals(release.datasets()[2])


def test_commands_that_only_read_take_a_zip_file(release, tmp_path):
    path = str(zipped(release, tmp_path / "r.zip"))

    truthful = str(zipped(measured_release(tmp_path / "measured"), tmp_path / "m.zip"))
    assert CliRunner().invoke(app, ["verify", truthful]).exit_code == 0
    analysed = CliRunner().invoke(app, ["analyze", path, "--formula", "income ~ owner", "--model", "binomial"])
    assert "income ~ owner" in analysed.stdout


def made(path, *members, kind=0):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = kind << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


@pytest.mark.parametrize(
    "name", ["../outside.txt", "a/../../outside.txt", "/outside.txt", "..\\outside.txt", "C:outside.txt"]
)
def test_names_outside_the_folder_are_refused(tmp_path, name):
    path = made(tmp_path / "r.zip", ("manifest.json", "{}"), (name, "x"))

    with pytest.raises(ReleaseError, match="outside its folder"):
        read_release(path)
    assert not list(tmp_path.parent.rglob("outside.txt"))


def test_links_are_refused(tmp_path):
    with pytest.raises(ReleaseError, match="link"):
        read_release(made(tmp_path / "r.zip", ("manifest.json", "/etc/passwd"), kind=stat.S_IFLNK | 0o777))


def test_what_unpacks_to_far_more_than_it_weighs_is_refused(tmp_path):
    path = made(tmp_path / "r.zip", ("manifest.json", "{}"), ("big.bin", b"0" * 50_000_000))

    with pytest.raises(ReleaseError, match="would unpack to 50,000,002 bytes"):
        read_release(path)


def test_what_is_too_large_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match="would unpack"):
        unpacked(made(tmp_path / "r.zip", ("manifest.json", "x" * 200)), "manifest.json", max_bytes=100)


def test_one_name_twice_is_refused(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        path = made(tmp_path / "r.zip", ("manifest.json", "{}"), ("manifest.json", "{ }"))
    with pytest.raises(ReleaseError, match="twice"):
        read_release(path)


def test_what_is_no_release_is_said(tmp_path):
    with pytest.raises(ReleaseError, match=r"holds no manifest\.json"):
        read_release(made(tmp_path / "r.zip", ("a/b/manifest.json", "{}")))
    with pytest.raises(ReleaseError, match="several releases"):
        read_release(made(tmp_path / "s.zip", ("a/manifest.json", "{}"), ("b/manifest.json", "{}")))
    with pytest.raises(ReleaseError, match="does not exist"):
        read_release(tmp_path / "none.zip")
    Path(tmp_path / "t.zip").write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(ReleaseError, match="not a readable zip"):
        read_release(tmp_path / "t.zip")
