"""`verify` believes nothing: each claim is changed in turn, hashes made to fit, and it is noticed."""

import hashlib
import io
import json
import math
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from measured import measured_release
from noise_twins import NoNoise, Twin, lattice_draws
from noisewise import Mst, NoisyCounts
from noisewise.artifacts import MANIFEST, damage
from noisewise.artifacts.promise import ALPHA, best_guess, count_gaps, promise_gaps, release_gaps
from noisewise.artifacts.registry import registry_entry
from noisewise.cli import app
from noisewise.errors import BudgetError, ReleaseError
from noisewise.privacy.accounting import PrivacyLoss


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def release(tmp_path):
    return measured_release(tmp_path / "release", select=Mst(share=0.2))


def edited(release, *path, to):
    """Change one value of the manifest."""
    file = release.folder / MANIFEST
    content = json.loads(file.read_text())
    place = content
    for key in path[:-1]:
        place = place[key]
    assert path[-1] in place if isinstance(place, dict) else True
    place[path[-1]] = to(place[path[-1]]) if callable(to) else to
    file.write_text(json.dumps(content))


def forged(release, change):
    """Change the counts and everything that seals them."""
    counts = change(release.noisy_counts())
    buffer = io.BytesIO()
    pq.write_table(counts.to_arrow(), buffer, compression="zstd")
    (release.folder / "noisy_counts.parquet").write_bytes(buffer.getvalue())
    edited(release, "files", "noisy_counts.parquet", to=hashlib.sha256(buffer.getvalue()).hexdigest())
    edited(release, "noisy_counts_hash", to=counts.hash)


def test_one_screen_says_who_is_protected_from_what(release):
    result = run("verify", release.folder)

    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    wanted = (
        "Who is protected", "The unit is one row", "factor of at most e^1", "In other words", "Not protected",
        "the number of rows", "losses from other releases", "All of this adds up", "(SHA-256)",
        "ρ follow from the noise",
        "select", "exponential", "20%", "Nobody signed it",
    )  # fmt: skip
    assert [words for words in wanted if words not in said] == []
    assert len(result.stdout.splitlines()) <= 45


LIES = {
    "a smaller epsilon": (("privacy", "epsilon"), 0.5),
    "a smaller delta": (("privacy", "delta"), 1e-12),
    "another rho": (("privacy", "rho"), lambda rho: rho * 1.01),
    "a cheaper act": (("privacy", "steps", 1, "rho"), lambda rho: rho / 2),
    "more noise than there was": (("privacy", "steps", 1, "stddevs", 0), lambda stddev: stddev * 1.1),
    "fewer choices": (("privacy", "steps", 0, "rounds"), lambda rounds: rounds[1:]),
    "a smaller share": (("privacy", "steps", 0, "share"), 0.1),
    "other noise beside the marginal": (("marginals", 0, "noise_stddev"), lambda stddev: stddev * 1.1),
    "selection left out": (("privacy", "steps"), lambda steps: steps[1:]),
    "nothing at all": (("privacy", "steps"), []),
    "a unit of several rows": (("privacy", "max_rows_per_unit"), 5),
    "a large delta": (("privacy", "delta"), 0.1),
    "a biased sampler": (("software", "opendp"), "0.14.1"),
    "no sampler": (("software",), {"noisewise": "0.1.0"}),
    "noise of zero": (("privacy", "steps", 1, "stddevs", 0), 0.0),
    "other rows": (("rows",), 200),
    "negative rho": (("privacy", "rho"), -1.0),
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.replace(" ", "-"))
def test_every_lie_in_the_manifest_is_noticed(release, lie):
    path, to = LIES[lie]
    edited(release, *path, to=to)

    result = run("verify", release.folder)

    assert result.exit_code == 7
    assert "does not add up" in result.stderr
    assert "Traceback" not in result.output
    if lie not in ("other noise beside the marginal", "other rows"):
        assert promise_gaps(release.manifest()) != []


def test_a_promise_that_holds_has_no_gaps(tmp_path):
    for number, options in enumerate(({}, {"select": Mst()}, {"epsilon": 0.05}, {"epsilon": 30.0, "select": Mst()})):
        release = measured_release(tmp_path / str(number), noise=Twin(seed=number), **options)
        assert damage(release) == []
        assert release_gaps(release) == []


def with_values(counts, values):
    measurements = tuple(replace(m, values=v) for m, v in zip(counts.measurements, values, strict=True))
    return NoisyCounts(schema=counts.schema, rows=counts.rows, measurements=measurements, privacy=counts.privacy)


def test_counts_of_other_rows_are_noticed_even_with_new_hashes(release):
    def moved(counts):
        first = counts.measurements[0].values.copy()
        first.flat[0] += math.ceil(12 * counts.measurements[0].stddev * math.sqrt(first.size))
        return with_values(counts, [first, *(m.values for m in counts.measurements[1:])])

    forged(release, moved)

    assert damage(release) == []
    assert any("add up to" in gap for gap in release_gaps(release))
    assert run("verify", release.folder).exit_code == 7


def test_exact_counts_passed_off_as_noisy_ones_are_noticed(tmp_path):
    """σ = 0 behind an honest manifest: many sums that all equal the number of rows are no accident."""
    honest = measured_release(tmp_path / "honest", epsilon=0.1, select=Mst())
    exact = measured_release(tmp_path / "exact", epsilon=0.1, select=Mst(), noise=NoNoise())

    assert release_gaps(honest) == []
    assert release_gaps(exact) == [
        "The sums of the counts are nearer to the number of rows than the stated noise lets them be."
    ]


def test_true_noise_is_hardly_ever_taken_for_wrong(tmp_path):
    """2 000 releases; α = 1e-9 each, so that one false alarm has a chance of 1e-5 (and the discreteness lowers it)."""
    counts = measured_release(tmp_path / "r", epsilon=20.0).noisy_counts()
    random = np.random.default_rng(0)
    for _ in range(2000):
        values = []
        for m in counts.measurements:
            exact = random.multinomial(counts.rows, np.full(m.values.size, 1 / m.values.size)).reshape(m.values.shape)
            values.append(exact + lattice_draws(random, m.stddev, m.values.shape))
        assert count_gaps(with_values(counts, values)) == []
    assert ALPHA == 1e-9


def test_the_best_guess_is_never_better_than_the_privacy_curve_allows_and_nearly_reaches_it():
    """Against the exact trade-off of the discrete Gaussian, from its whole privacy profile."""
    loss = PrivacyLoss(stddevs=(5.0,) * 2)
    for epsilon in (0.3, 1.0, 2.0):
        ours = best_guess(epsilon, loss.delta(epsilon))
        exact = min(math.exp(e) * 0.05 + loss.delta(e) for e in np.linspace(0, 6, 400))
        assert exact <= ours
    assert best_guess(0.0, 0.0) == pytest.approx(0.05)
    assert best_guess(100.0, 0.0) == pytest.approx(1.0)


def test_a_release_in_the_words_of_the_registry(release):
    entry = json.loads(run("verify", release.folder, "--registry").stdout)

    assert entry == registry_entry(release.manifest())
    deployment = entry["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"]["epsilon"] == release.manifest().privacy.epsilon
    assert "the number of rows" in deployment["dp_flavor"]["unprotected_quantities"]
    assert deployment["model"]["model_name"] == "Central"


# Signatures, with the real ssh-keygen


@pytest.fixture
def keys(tmp_path):
    if shutil.which("ssh-keygen") is None:
        import os

        (pytest.fail if os.environ.get("CI") else pytest.skip)("ssh-keygen is not installed")
    for name in ("holder", "stranger"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", tmp_path / name], check=True
        )  # fmt: skip
    public = (tmp_path / "holder.pub").read_text().split()
    (tmp_path / "allowed").write_text(f"office@example.org {public[0]} {public[1]}\n")
    return tmp_path


def test_a_signed_release_is_its_holders(release, keys):
    signed = run("sign", release.folder, "--key", keys / "holder")
    assert signed.exit_code == 0, signed.output
    known = run("verify", release.folder, "--allowed-signers", keys / "allowed")
    unknown = run("verify", release.folder)

    assert "Signed by office@example.org" in known.stdout
    assert "Signed with the key SHA256:" in unknown.stdout
    assert damage(release) == []


def test_a_signed_release_is_not_changed_by_mistake(release, keys, tmp_path):
    run("sign", release.folder, "--key", keys / "holder")
    before = (release.folder / "manifest.json").read_bytes()
    for words in (["fit"], ["synthesize"], ["report"], ["certify", "--analyses", "a ~ b"]):
        refused = run(words[0], release.folder, *words[1:])
        assert refused.exit_code == 7, words
        assert "is signed" in refused.stderr
        assert "sign again afterwards" in refused.stderr
    with pytest.raises(ReleaseError, match="is signed"):
        release.write_report("<p>new</p>")
    assert (release.folder / "manifest.json").read_bytes() == before

    elsewhere = run("report", release.folder, "--output", tmp_path / "page.html")
    assert elsewhere.exit_code == 0, elsewhere.output
    assert "<!doctype html>" in (tmp_path / "page.html").read_text("utf-8")
    inside = run("report", release.folder, "--output", release.folder / "report.html")
    assert inside.exit_code == 7
    assert "inside the release" in inside.stderr
    assert run("verify", release.folder, "--allowed-signers", keys / "allowed").exit_code == 0


def test_a_strangers_signature_and_a_changed_manifest_are_refused(release, keys):
    run("sign", release.folder, "--key", keys / "stranger")
    refused = run("verify", release.folder, "--allowed-signers", keys / "allowed")
    assert refused.exit_code == 7
    assert "does not list" in refused.stderr

    run("sign", release.folder, "--key", keys / "holder")
    edited(release, "analyses", to=[{"model": "poisson", "formula": "a ~ b"}])
    for words in ((), ("--allowed-signers", keys / "allowed")):
        result = run("verify", release.folder, *words)
        assert result.exit_code == 7
        assert "not one of this manifest" in result.stderr
        assert "sign it again" in result.stderr


def test_what_is_not_signed_or_cannot_be_is_told(release, keys, monkeypatch):
    asked = run("verify", release.folder, "--allowed-signers", keys / "allowed")
    assert asked.exit_code == 7
    assert "is not signed" in asked.stderr

    no_key = run("sign", release.folder, "--key", keys / "none")
    assert no_key.exit_code == 7
    assert "Check the key" in no_key.stderr

    edited(release, "privacy", "epsilon", to=0.1)
    lie = run("sign", release.folder, "--key", keys / "holder")
    assert lie.exit_code == 7
    assert "Nobody should sign this" in lie.stderr

    edited(release, "privacy", "epsilon", to=1.0)
    (release.folder / "manifest.json.sig").write_bytes(b"x" * 200_000)
    assert "no signature" in run("verify", release.folder).stderr
    (release.folder / "manifest.json.sig").unlink()
    monkeypatch.setattr("noisewise.artifacts.signature.which", lambda _: None)
    assert "Install OpenSSH" in run("sign", release.folder, "--key", keys / "holder").stderr


def test_the_statement_of_a_senseless_noise_is_an_error_with_a_name():
    with pytest.raises(BudgetError):
        PrivacyLoss(stddevs=(0.0,))
