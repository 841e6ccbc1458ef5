"""The certificate from beginning to end on a small graph: it holds where it should, and it can fail."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from noisewise.analysis import glm
from noisewise.artifacts import Release, damage
from noisewise.certificate import certify as module
from noisewise.certificate.certify import certify
from noisewise.certificate.notebook import Notebook
from noisewise.errors import AnalysisError, FitError, ReleaseError
from noisewise.posterior.fit import fit
from noisewise.rehearsal import FromSample, rehearse, rehearsed_counts
from noisewise.schema import Boolean, Schema
from noisewise.synthesis import synthesize
from small_release import PRIVACY, posterior_by_hand

NAMES = ("y", "a", "b")
SCHEMA = Schema(name="coins", column=tuple(Boolean(name=name) for name in NAMES))
MARGINALS = (("y", "a"), ("a", "b"))
ROWS, STDDEV = 2_000, 6.0
SUPPORTED, RESTS_ON_A_GAP = "y ~ a", "y ~ a + b"
ANALYSES = {formula: glm(formula, family="binomial") for formula in (SUPPORTED, RESTS_ON_A_GAP)}


def table(rows=ROWS):
    """y depends on a, and b on a; y and b are independent given a, and were not measured together."""
    random = np.random.default_rng(0)
    a = random.random(rows) < 0.5
    y, b = (random.random(rows) < np.where(a, high, low) for high, low in ((0.6, 0.35), (0.7, 0.4)))
    return np.column_stack([y, a, b]).astype(int)


@pytest.fixture(scope="module")
def posterior():
    counts = rehearsed_counts(table(), SCHEMA, MARGINALS, [STDDEV] * 2, np.random.default_rng(1))
    return fit(replace(counts, privacy=PRIVACY), seed=0)


@pytest.fixture(scope="module")
def certificate(posterior):
    return certify(posterior, ANALYSES, repeats=24, datasets=40, seed=1)


def terms(certificate):
    return {(one.title, term.term): term for one in certificate.analyses for term in one.terms}


def test_what_was_measured_holds_and_what_was_not_fails(certificate):
    found = terms(certificate)

    assert found[SUPPORTED, "a"].verdict == "holds"
    assert found[SUPPORTED, "a"].reasons == ()
    assert found[SUPPORTED, "a"].supported
    unsupported = found[RESTS_ON_A_GAP, "b"]
    assert unsupported.verdict == "fails"
    assert "y × b were not measured together" in " ".join(unsupported.reasons)
    # In the model's own populations even it covers: only the populations of the second kind tell.
    assert unsupported.levels[-1].hits >= 21
    assert (
        unsupported.stressed[-1].hits <= 7
    )  # P(7 or fewer of 10 | 0.95) = 0.012; 5 here, its intervals being very wide


def test_it_says_what_it_did(certificate, posterior):
    assert (certificate.repeats, certificate.stressed, certificate.datasets, certificate.rows) == (24, 10, 40, ROWS)
    assert certificate.posterior_hash == posterior.hash
    supported, gap = certificate.analyses
    assert (supported.gaps, supported.stress) == ((), "")
    assert "y × b" in gap.stress
    assert "could not tell them apart" in gap.stress
    assert "exact distribution" in supported.truth


def test_intervals_are_wider_than_without_privacy_and_biased_by_nothing(certificate):
    term = terms(certificate)[SUPPORTED, "a"]

    assert 1.0 < term.levels[-1].width_ratio < 2.0
    # Six Monte Carlo standard errors: a false alarm in five hundred million.
    assert abs(term.bias) < 6 * term.bias_stderr
    assert term.levels[-1].reference > 0.7  # 24 intervals without privacy: P(16 or fewer | 0.95) = 1e-5


def test_the_broken_twin_whose_noise_is_larger_than_it_says_fails(posterior, monkeypatch):
    rehearsing = sys.modules["noisewise.rehearsal.rehearse"]  # its function has the same name in the package

    def lying(codes, schema, marginals, stddevs, stream):
        noisy = rehearsed_counts(codes, schema, marginals, [8 * s for s in stddevs], stream)
        honest = rehearsed_counts(codes, schema, marginals, stddevs, np.random.default_rng(0))
        parts = zip(honest.measurements, noisy.measurements, strict=True)
        told = tuple(type(h)(marginal=h.marginal, values=n.values, stddev=h.stddev) for h, n in parts)
        return type(honest)(schema=schema, rows=len(codes), measurements=told, privacy=honest.privacy)

    monkeypatch.setattr(rehearsing, "rehearsed_counts", lying)
    found = certify(posterior, {SUPPORTED: ANALYSES[SUPPORTED]}, repeats=24, datasets=40, seed=1)

    assert terms(found)[SUPPORTED, "a"].verdict == "fails"


def test_a_run_that_was_stopped_goes_on_and_gives_the_same(posterior, certificate, tmp_path, monkeypatch):
    path, done = tmp_path / "kept.jsonl", []
    computed = module.repeat
    given = {SUPPORTED: ANALYSES[SUPPORTED]}

    def stops(plan, number, stressed):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(number)
        return computed(plan, number, stressed)

    monkeypatch.setattr(module, "repeat", stops)
    with pytest.raises(KeyboardInterrupt):
        certify(posterior, given, repeats=4, datasets=10, seed=1, notebook=path)
    with path.open("a") as file:
        file.write('{"number": 3, "stre')  # as a kill in the middle of writing leaves it
    again = []
    monkeypatch.setattr(module, "repeat", lambda *task: again.append(task[1]) or computed(*task))
    resumed = certify(posterior, given, repeats=4, datasets=10, seed=1, notebook=path)
    monkeypatch.setattr(module, "repeat", computed)

    assert (done, again) == ([0, 1], [2, 3])
    assert not path.exists()
    assert resumed.to_json() == certify(posterior, given, repeats=4, datasets=10, seed=1).to_json()


def test_what_was_kept_of_another_certificate_is_not_used(tmp_path):
    path = tmp_path / "kept.jsonl"
    first = Notebook(path=path, key="one")
    first.begin([])
    first.add({"number": 0})

    assert first.read() == [{"number": 0}]
    assert Notebook(path=path, key="two").read() == []
    assert Notebook(path=tmp_path / "none", key="one").read() == []


def test_what_cannot_be_certified_is_refused(posterior):
    with pytest.raises(AnalysisError, match="no analysis"):
        certify(posterior, {})
    with pytest.raises(AnalysisError, match="repeats is 1"):
        certify(posterior, ANALYSES, repeats=1)
    with pytest.raises(FitError, match="failed its checks"):
        certify(posterior_by_hand(trusted=False), ANALYSES)


def test_a_certificate_is_attached_read_back_and_withdrawn_with_its_posterior(posterior, certificate, tmp_path):
    release = Release(tmp_path / "release")
    release.write_noisy_counts(posterior.noisy_counts)
    assert release.certificate() is None
    release.write_posterior(posterior)
    release.write_datasets(synthesize(posterior, 3, 50))

    path = release.write_certificate(certificate)

    assert release.certificate() == certificate
    assert damage(release) == []
    assert len(release.datasets()) == 3
    path.write_bytes(path.read_bytes().replace(b'"fails"', b'"holds"'))
    assert any("certificate.json was changed" in finding for finding in damage(release))
    release.write_posterior(posterior)
    assert release.certificate() is None
    assert not path.exists()
    with pytest.raises(ReleaseError, match="another posterior"):
        release.write_certificate(certificate.model_copy(update={"posterior_hash": "0"}))


def test_the_first_population_is_not_the_confidential_table(posterior):
    """What a rehearsal is given has no way to real rows: it comes from the posterior alone."""
    sample = FromSample(codes=table(200))
    done = rehearse(sample, SCHEMA, MARGINALS, [STDDEV] * 2, 300, {}, datasets=2, dataset_rows=30)

    assert done.pooled == {}


@pytest.mark.slow
def test_processes_share_the_work_and_give_the_same(posterior, certificate):
    shared = certify(posterior, ANALYSES, repeats=24, datasets=40, seed=1, workers=2)

    assert shared.to_json() == certificate.to_json()


KILLED = """
import sys
from pathlib import Path
from noisewise import glm, read_release
from noisewise.certificate.certify import certify

if __name__ == "__main__":
    folder, kept = map(Path, sys.argv[1:])
    given = {"y ~ a": glm("y ~ a", family="binomial")}
    made = certify(read_release(folder).posterior(), given, repeats=30, datasets=40, workers=2, notebook=kept)
    print(made.to_json().decode())
"""


@pytest.mark.slow
def test_after_a_kill_the_processes_are_gone_and_the_work_is_kept(posterior, tmp_path):
    release, kept, script = Release(tmp_path / "release"), tmp_path / "kept.jsonl", tmp_path / "killed.py"
    release.write_noisy_counts(posterior.noisy_counts)
    release.write_posterior(posterior)
    script.write_text(KILLED)
    words = [sys.executable, str(script), str(release.folder), str(kept)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as run:
        _wait(lambda: kept.exists() and len(kept.read_text().splitlines()) > 3)
        run.send_signal(signal.SIGKILL)
    _wait(lambda: not _alive(run.pid))

    before = len(kept.read_text().splitlines())
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert before > 3
    assert len(json.loads(done.stdout)["analyses"]) == 1
    assert not kept.exists()


def _alive(session):
    """Whether any process of a session is left."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                return True
    return False


def _wait(condition, seconds=120):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.1)
