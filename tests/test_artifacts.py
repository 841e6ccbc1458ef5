"""A release folder: what is written comes back, and what was tampered with is refused by name."""

import getpass
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noisewise.artifacts import MANIFEST, Release, contents, damage, manifest, read_release
from noisewise.errors import NoisewiseError, ReleaseError
from noisewise.synthesis import synthesize
from small_release import MARGINALS, SCHEMA, posterior_by_hand, small_counts


def write_release(folder, datasets=3) -> Release:
    counts = small_counts()
    posterior = posterior_by_hand(counts)
    release = Release(folder)
    release.write_noisy_counts(counts, ({"model": "binomial", "formula": "smoker ~ age"},))
    release.write_posterior(posterior)
    release.write_datasets(synthesize(posterior, datasets, seed=4))
    release.write_report("<html>a report</html>")
    return release


@pytest.fixture
def release(tmp_path) -> Release:
    return write_release(tmp_path / "release")


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rewrite_manifest(release: Release, **changes) -> None:
    path = release.folder / MANIFEST
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(content))


def forge(release: Release, name: str, content: bytes) -> None:
    """Replace a file and its hash: what somebody does who knows the format."""
    (release.folder / name).write_bytes(content)
    files = json.loads((release.folder / MANIFEST).read_text())["files"]
    rewrite_manifest(release, files=files | {name: hashlib.sha256(content).hexdigest()})


# Round trip


def test_every_file_comes_back_as_it_was_written(release):
    counts, posterior = small_counts(), posterior_by_hand()
    read = read_release(release.folder)

    assert read.schema() == SCHEMA
    assert read.noisy_counts().hash == counts.hash
    assert read.noisy_counts().privacy == counts.privacy
    assert read.noisy_counts().marginals == MARGINALS
    assert np.array_equal(read.posterior().theta, posterior.theta)
    assert read.posterior().verdict == posterior.verdict
    assert read.posterior().record == posterior.record
    drawn, stored = synthesize(posterior, 3, seed=4), read.datasets()
    assert all(drawn[i].equals(stored[i]) for i in range(3))
    assert all(drawn[i].schema == stored[i].schema for i in range(3))
    assert (stored.rows, stored.original_rows, stored.marginals) == (500, 500, MARGINALS)
    assert read.manifest().analyses == ({"model": "binomial", "formula": "smoker ~ age"},)
    assert damage(read) == []


def test_a_posterior_read_from_a_release_draws_the_same_datasets(release):
    again = synthesize(release.posterior(), 3, seed=4)

    assert all(again[i].equals(release.datasets()[i]) for i in range(3))


def test_stages_that_are_not_there_yet_are_named(tmp_path):
    release = Release(tmp_path / "release")
    with pytest.raises(ReleaseError, match=r"no manifest\.json"):
        release.manifest()
    release.write_noisy_counts(small_counts())
    with pytest.raises(ReleaseError, match="noisewise fit"):
        release.posterior()
    with pytest.raises(ReleaseError, match="noisewise synthesize"):
        release.datasets()


def test_a_release_is_never_measured_over(release):
    before = tree(release.folder)
    with pytest.raises(ReleaseError, match="already holds a release"):
        release.write_noisy_counts(small_counts(seed=9))
    assert tree(release.folder) == before


def test_a_new_posterior_takes_away_what_was_drawn_from_the_old_one(release):
    release.write_posterior(posterior_by_hand(seed=7))

    assert damage(release) == []
    assert sorted(tree(release.folder)) == [MANIFEST, "noisy_counts.parquet", "posterior.npz", "schema.toml"]
    with pytest.raises(ReleaseError, match="noisewise synthesize"):
        release.datasets()


def test_fewer_datasets_replace_more(release):
    release.write_datasets(synthesize(release.posterior(), 2, seed=5))

    assert damage(release) == []
    assert len(list((release.folder / "synthetic").iterdir())) == 2
    assert not (release.folder / "report.html").exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReleaseError, match="Give another"):
        Release(tmp_path / "file" / "release").write_noisy_counts(small_counts())


# The same bytes everywhere


def test_equal_content_gives_equal_bytes_here_and_in_another_process(release, tmp_path):
    code = "import sys; from test_artifacts import write_release; write_release(sys.argv[1])"
    for hash_seed in ("1", "2"):
        environment = os.environ | {
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TZ": "Asia/Tokyo",
        }
        target = tmp_path / f"other-{hash_seed}"
        subprocess.run([sys.executable, "-c", code, target], env=environment, check=True)
        assert tree(target) == tree(release.folder)


def test_stages_run_twice_leave_the_bytes_of_one_run(release):
    once = tree(release.folder)
    posterior = release.posterior()
    release.write_posterior(posterior)
    release.write_datasets(synthesize(posterior, 3, seed=4))
    release.write_report("<html>a report</html>")

    assert tree(release.folder) == once


def test_no_byte_tells_of_the_machine(release):
    host, user, here = socket.gethostname(), getpass.getuser(), str(release.folder.parent)
    telling = [text.encode() for text in (here, os.getcwd(), sys.prefix, str(Path.home()) + "/", host) if len(text) > 3]
    for name, content in tree(release.folder).items():
        if name.endswith(".parquet"):
            table = pq.read_table(release.folder / name)
            assert table.schema.metadata is None
        assert not any(text in content for text in telling), name
        assert len(user) < 5 or user.encode() not in content, name
    with zipfile.ZipFile(release.folder / "posterior.npz") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


# Damage


@pytest.mark.parametrize(
    "name", ["schema.toml", "noisy_counts.parquet", "posterior.npz", "synthetic/dataset-001.parquet"]
)
@pytest.mark.parametrize("change", ["missing", "truncated", "edited", "empty"])
def test_a_damaged_file_is_named_by_verify_and_refused_by_readers(release, name, change):
    path = release.folder / name
    content = path.read_bytes()
    changed = {"truncated": content[: len(content) // 2], "empty": b"", "edited": content[:-9] + b"X" + content[-8:]}
    path.unlink() if change == "missing" else path.write_bytes(changed[change])

    assert any(name in finding for finding in damage(release))
    reader = (lambda: release.datasets()[1]) if name.startswith("synthetic") else release.posterior
    if name.startswith("synthetic") and change == "edited":
        return  # datasets are many: their hashes are the business of verify
    with pytest.raises(ReleaseError, match=Path(name).name):
        reader()


@pytest.mark.parametrize(
    "name", ["notes.txt", "synthetic/dataset-007.parquet", "deep/er/file", "manifest.json.partial"]
)
def test_a_file_that_is_not_listed_is_found(release, name):
    (release.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (release.folder / name).write_bytes(b"hello")

    assert damage(release) == [f"{name} is not listed in the manifest."]


def test_a_signature_beside_the_manifest_is_no_damage(release):
    (release.folder / "manifest.json.sig").write_bytes(b"signed")
    assert damage(release) == []


@pytest.mark.parametrize("name", ["schema.toml", "noisy_counts.parquet", "posterior.npz", MANIFEST])
def test_a_link_is_refused_even_if_it_leads_to_the_right_bytes(release, tmp_path, name):
    (release.folder / name).rename(tmp_path / "elsewhere")
    (release.folder / name).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ReleaseError, match="symbolic link"):
        release.posterior()
    if name != MANIFEST:
        assert damage(release) == [f"{name} is a symbolic link; a release holds plain files only."]


def test_a_linked_folder_is_refused(release, tmp_path):
    (release.folder / "synthetic").rename(tmp_path / "elsewhere")
    (release.folder / "synthetic").symlink_to(tmp_path / "elsewhere")

    assert "synthetic is a symbolic link; a release holds plain files only." in damage(release)
    with pytest.raises(ReleaseError, match="symbolic link"):
        release.datasets()
    with pytest.raises(ReleaseError, match="symbolic link"):
        release.write_posterior(posterior_by_hand())
    assert len(list((tmp_path / "elsewhere").iterdir())) == 3


@pytest.mark.parametrize(
    "name",
    ["../outside.txt", "/etc/passwd", "synthetic/../../x.parquet", "a\\b.txt", "synthetic//x.txt", "", ".", "x.txt\n"],
)
def test_names_that_lead_out_of_the_folder_are_refused(release, name):
    files = json.loads((release.folder / MANIFEST).read_text())["files"]
    rewrite_manifest(release, files=files | {name: "0" * 64})

    with pytest.raises(ReleaseError, match="Do not trust it"):
        read_release(release.folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated or edited"),
        (b"{", "truncated or edited"),
        (b"\xff\xfe", "truncated or edited"),
        (b"[" * 100_000, "truncated or edited"),
        (b'{"version": NaN}', "truncated or edited"),
        (b"[]", "not a valid manifest"),
        (b"{}", "not a valid manifest"),
        (b'{"version": 2}', "reads version 1"),
        (b'{"version": "1"}', "reads version 1"),
    ],
)
def test_a_manifest_that_is_none_is_refused(release, content, message):
    (release.folder / MANIFEST).write_bytes(content)
    with pytest.raises(ReleaseError, match=message):
        read_release(release.folder)


@pytest.mark.parametrize("changes", [{"rows": 0}, {"rows": "many"}, {"unknown": 1}, {"files": {"schema.toml": 5}}])
def test_manifest_entries_are_checked(release, changes):
    rewrite_manifest(release, **changes)
    with pytest.raises(ReleaseError, match=next(iter(changes))):
        read_release(release.folder)


def test_a_manifest_too_large_to_be_one_is_not_read(release, monkeypatch):
    monkeypatch.setattr(manifest, "MAX_MANIFEST_BYTES", 100)
    with pytest.raises(ReleaseError, match="larger than any manifest"):
        read_release(release.folder)


def test_datasets_that_are_not_what_the_manifest_says_are_refused(release):
    synthesis = json.loads((release.folder / MANIFEST).read_text())["synthesis"]
    rewrite_manifest(release, synthesis=synthesis | {"rows": 499})
    with pytest.raises(ReleaseError, match="does not hold 499 rows"):
        release.datasets()[0]
    rewrite_manifest(release, synthesis=synthesis | {"datasets": 100})
    with pytest.raises(ReleaseError, match="speaks of 100 synthetic datasets and lists 3"):
        release.datasets()


def test_a_dataset_with_other_columns_is_refused(release):
    table = release.datasets()[0].rename_columns(["a", "b", "c", "d"])
    pq.write_table(table, release.folder / "synthetic" / "dataset-000.parquet")
    with pytest.raises(ReleaseError, match="columns"):
        release.datasets()[0]


# Forged content: hashes that fit, and still nothing harmful is read


def test_noisy_counts_of_another_size_are_refused_before_they_are_unpacked(release):
    many = pa.table({"measurement": pa.array(np.zeros(1_000_000, np.int32))})
    buffer = io.BytesIO()
    pq.write_table(many, buffer, compression="zstd")
    forge(release, "noisy_counts.parquet", buffer.getvalue())
    with pytest.raises(ReleaseError, match="does not hold the 24 rows"):
        release.noisy_counts()


def edited_counts(release, column, values) -> bytes:
    table = pq.read_table(release.folder / "noisy_counts.parquet")
    table = table.set_column(table.column_names.index(column), column, values)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("measurement", pa.array(np.full(24, 2_000_000_000, np.int32))),
        ("measurement", pa.nulls(24, pa.int32())),
        ("columns", pa.nulls(24, pa.list_(pa.string()))),
        ("noise_stddev", pa.nulls(24, pa.float64())),
        ("noise_stddev", pa.array(np.full(24, np.nan))),
        ("noise_stddev", pa.array(np.zeros(24))),
        ("noisy_count", pa.array(["many"] * 24)),
        ("noisy_count", pa.array(np.arange(24))),
    ],
)
def test_forged_noisy_counts_are_refused(release, column, values):
    forge(release, "noisy_counts.parquet", edited_counts(release, column, values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # casting NaN; what matters is the refusal
        with pytest.raises(ReleaseError):
            release.noisy_counts()


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy_with_header(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def zipped(member: bytes, compression=zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr("theta.npy", member)
    return buffer.getvalue()


def header_of(shape: str, descr: str = "<f8", order: str = "False") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"


PARAMETERS = posterior_by_hand().model.parameters
THETA = posterior_by_hand().theta


@pytest.mark.parametrize(
    "content",
    {
        "not a zip": b"hello",
        "other member": npz(draws=THETA),
        "other precision": npz(theta=THETA.astype(np.float32)),
        "other parameters": npz(theta=THETA[:, :, 1:]),
        "two axes": npz(theta=THETA[0]),
        "no draws": npz(theta=THETA[:, :0]),
        "column order": npz(theta=np.asfortranarray(THETA)),
        "pickled objects": npz(theta=np.full((1, 1, PARAMETERS), None, object)),
        "huge shape": zipped(npy_with_header(header_of(f"({2**70}, 1, {PARAMETERS})"))),
        "overflowing shape": zipped(npy_with_header(header_of(f"({2**61}, {2**3}, {PARAMETERS})"))),
        "negative shape": zipped(npy_with_header(header_of(f"(-1, -1, {PARAMETERS})"), bytes(8 * PARAMETERS))),
        "a code in the header": zipped(npy_with_header("__import__('os').getcwd()")),
        "half a header": zipped(npy_with_header("{'descr': ('<f8', ")),
        "shorter than it says": zipped(npy_with_header(header_of(f"(1, 9, {PARAMETERS})"), b"12345678")),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_forged_posterior_is_refused(release, content):
    forge(release, "posterior.npz", content[1])
    with pytest.raises(ReleaseError, match=r"posterior\.npz is not a posterior of this model"):
        release.posterior()


def test_a_zip_bomb_is_refused_unread(release):
    draws = 200_000
    body = bytes(8 * PARAMETERS * draws)
    bomb = zipped(npy_with_header(header_of(f"(1, {draws}, {PARAMETERS})"), body), zipfile.ZIP_DEFLATED)
    assert len(bomb) < len(body) / 500
    forge(release, "posterior.npz", bomb)
    with pytest.raises(ReleaseError, match=r"posterior\.npz"):
        release.posterior()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_draws_that_are_not_finite_are_refused(release, value):
    theta = THETA.copy()
    theta[1, 3, 0] = value
    forge(release, "posterior.npz", npz(theta=theta))
    with pytest.raises(ReleaseError, match="not finite"):
        release.posterior()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    position=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), name=st.sampled_from(["posterior", "counts"])
)
def test_no_single_byte_makes_a_reader_fail_with_anything_but_a_release_error(position, value, name):
    content = bytearray(CONTENT[name])
    content[int(position * len(content))] = value
    try:
        if name == "posterior":
            contents.read_theta(bytes(content), PARAMETERS)
        else:
            contents.read_table(bytes(content), "noisy_counts.parquet", 24)
    except ReleaseError:
        pass


def _parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(small_counts().to_arrow(), buffer, compression="zstd")
    return buffer.getvalue()


CONTENT = {"posterior": contents.npz({"theta": THETA[:, :1]}), "counts": _parquet()}


# Interrupted writes


class Stop(BaseException):
    """Somebody presses Ctrl-C."""


def stop_after(steps):
    def progress(what, done, total):
        if done >= steps:
            raise Stop

    return progress


def test_interrupted_drawing_leaves_the_release_as_it_was(release):
    before = tree(release.folder)
    with pytest.raises(Stop):
        release.write_datasets(synthesize(release.posterior(), 9, seed=1), progress=stop_after(5))
    assert tree(release.folder) == before


@pytest.mark.parametrize("calls", [1, 2])
def test_a_write_that_fails_midway_leaves_a_release_that_adds_up(release, monkeypatch, calls):
    real, left = os.replace, [calls]

    def failing(self, target):
        left[0] -= 1
        if left[0] == 0:
            raise OSError("disk full")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="disk full"):
        release.write_posterior(posterior_by_hand(seed=5))
    monkeypatch.undo()

    assert damage(release) == []
    assert not list(release.folder.rglob("*.partial"))
    release.write_posterior(posterior_by_hand(seed=5))
    assert damage(release) == []


def test_what_a_killed_process_left_behind_is_cleared_away(release):
    (release.folder / "synthetic.partial").mkdir()
    (release.folder / "synthetic.partial" / "dataset-000.parquet").write_bytes(b"half")
    (release.folder / "manifest.json.partial").write_bytes(b"half")
    release.write_datasets(synthesize(release.posterior(), 2, seed=4))

    assert damage(release) == []


def test_errors_of_a_release_are_of_one_kind(tmp_path):
    for bad in ("", "nothing-here"):
        with pytest.raises(NoisewiseError):
            read_release(tmp_path / bad)
