"""Each of the seventeen known defects is put back, and the test that is there against it fails.

The numbers are those of the table in docs/assurance.md. A defect is a few lines that change the program as somebody
might who did not know better; the named test is then run as it stands, and must fail.
"""

import inspect
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import test_accounting
import test_canary
import test_distinguishing
import test_known_attacks
import test_ledger
import test_measure
import test_noise
import test_non_interference
import test_pooling_rules
import test_selection
import test_verify
from holder import Fixed

import test_artifacts
import test_synthesis
from measured import measured_release
from noise_twins import Twin, truncated
from noisewise import Mst
from noisewise.analysis import pooling
from noisewise.artifacts import checks, promise
from noisewise.artifacts import release as release_module
from noisewise.posterior.result import Posterior
from noisewise.privacy import accounting, acts, selection
from noisewise.privacy import ledger as ledger_module
from noisewise.privacy import measure as measure_module
from noisewise.privacy import noise as noise_module
from noisewise.privacy.accounting import PrivacyLoss

Patch = pytest.MonkeyPatch


PICKLED = test_artifacts.npz(theta=np.full((1, 1, test_artifacts.PARAMETERS), None, object))


@dataclass(frozen=True, kw_only=True)
class Defect:
    """A defect, how to put it back, and the test that must fail then."""

    number: int
    what: str
    put_back: Callable[[Patch], None]
    caught_by: Callable[..., None]
    arguments: Callable[[Path], dict[str, object]] = lambda folder: {}


def schema_accepted_whatever_its_origin(patch):
    patch.setattr(measure_module, "refuse_unreviewed", lambda schema: None)


def relation_left_unsaid(patch):
    original = measure_module.statement_of

    def silent(*arguments):
        return original(*arguments).model_copy(update={"unprotected_quantities": ()})

    patch.setattr(measure_module, "statement_of", silent)


def add_or_remove(patch):
    """Noise for neighbours that differ by a row more or less: smaller by √2."""
    original = noise_module.OpenDPNoise.gaussian

    def gaussian(self, counts, stddev, squared_distance, rho):
        return original(self, counts, max(1.0, stddev / math.sqrt(2)), 1, rho)

    patch.setattr(noise_module.OpenDPNoise, "gaussian", gaussian)


def sensitivity_one_in_selection(patch):
    original = selection.Chances.chosen

    def chosen(self, candidates, score, number):
        scores = np.array([score(c) for c in candidates], dtype=np.int64)
        return candidates[self.noise.choose(scores, self.first.max_rows_per_unit, self.first.rounds[number])]

    assert original is not chosen
    patch.setattr(selection.Chances, "chosen", chosen)


def selection_not_counted(patch):
    original = acts.divide

    def whole_budget_twice(epsilon, delta, parts, rows=1):
        return tuple(original(epsilon, delta, [part], rows)[0] if part.weights else None for part in parts)

    patch.setattr(acts, "divide", whole_budget_twice)
    patch.setattr(measure_module, "statement_of", _believed)


def _believed(planned, settled, unit):
    from noisewise.privacy import statement

    return statement.statement_of([replace(act, loss=PrivacyLoss(stddevs=(1e7,))) for act in planned], settled, unit)


def draws_again(patch):
    patch.setattr(ledger_module, "_stored", lambda *_: None)


def float_noise(patch):
    def gaussian(self, counts, stddev, squared_distance, rho):
        return counts + np.random.default_rng().normal(0, stddev, counts.shape)

    patch.setattr(noise_module.OpenDPNoise, "gaussian", gaussian)


def biased_sampler(patch):
    patch.setattr(noise_module, "require_sound_version", lambda version: None)
    patch.setattr(test_noise, "require_sound_version", lambda version: None)


def biased_draws(patch):
    generator = np.random.default_rng(0)
    patch.setattr(noise_module, "_gaussian", lambda counts, s, *_: counts + truncated(generator, s, counts.shape))
    patch.setattr(noise_module, "goodness_of_fit", lambda *_: 1.0)


def no_guards(patch):
    patch.setattr(noise_module, "MIN_STDDEV", -1.0)
    patch.setattr(noise_module, "require_sound_sampler", lambda: None)
    patch.setattr(noise_module, "_gaussian", lambda counts, *_: counts)


def seeded_noise(patch):
    def gaussian(self, counts, stddev, squared_distance, rho):
        return Twin(seed=7).gaussian(counts, stddev, squared_distance, rho)

    patch.setattr(noise_module.OpenDPNoise, "gaussian", gaussian)


def continuous_formula(patch):
    def delta(self, epsilon):
        return accounting.gaussian_delta(epsilon, math.sqrt(2 * sum(s**-2 for s in self.stddevs)))

    patch.setattr(PrivacyLoss, "delta", delta)


def helpful_errors(patch):
    for module in ("counts", "files", "sources"):
        home = import_module(f"noisewise.confidential.{module}")
        if hasattr(home, "withheld"):
            patch.setattr(home, "withheld", test_canary.passed_on)


def pickle_allowed(patch):
    patch.setattr(
        release_module,
        "read_theta",
        lambda content, _: np.load(io.BytesIO(content), allow_pickle=True)["theta"].astype(float),
    )


def hashes_not_compared(patch):
    def as_listed(path):
        return json.loads((path.parent / "manifest.json").read_text())["files"][path.name]

    patch.setattr(checks, "file_hash", as_listed)


def numbers_believed(patch):
    patch.setattr(promise, "_derived_again", lambda privacy: [])


def verdict_ignored(patch):
    original = test_synthesis.synthesize
    patch.setattr(test_synthesis, "synthesize", lambda *a, **o: original(*a, **{**o, "allow_untrusted": True}))


def not_finite_accepted(patch):
    patch.setattr(release_module, "read_theta", lambda content, _: np.load(io.BytesIO(content))["theta"])
    patch.setattr(Posterior, "__post_init__", lambda self: None)


def negative_variance_kept(patch):
    """What the published formula gives when nobody looks: a negative variance, and intervals of NaN."""
    patch.setattr(pooling._FullySyntheticMoments, "positive", lambda self, total, *_: (total, ""))


def tells_of_the_table(patch):
    """A harmless detail in the statement: how many cells are empty."""
    original = measure_module._drawn

    def drawn(exact, *rest):
        print(sum(int((counts == 0).sum()) for counts in exact.tables.values()), "empty cells")
        return original(exact, *rest)

    patch.setattr(measure_module, "_drawn", drawn)
    patch.setattr(measure_module, "OpenDPNoise", Fixed)


DEFECTS = [
    Defect(number=1, what="a schema read off the data is used", put_back=schema_accepted_whatever_its_origin,
           caught_by=test_known_attacks.test_a_schema_read_off_the_data_is_refused),
    Defect(number=2, what="the relation and what is public are left unsaid", put_back=relation_left_unsaid,
           caught_by=test_measure.test_the_statement_can_be_derived_again_from_the_noise),
    Defect(number=3, what="add-or-remove noise under a claim for substitution", put_back=add_or_remove,
           caught_by=test_distinguishing.test_nobody_tells_neighbours_apart_better_than_stated),
    Defect(number=4, what="sensitivity of selection for add-or-remove", put_back=sensitivity_one_in_selection,
           caught_by=test_selection.test_every_choice_is_told_the_largest_move, arguments=lambda _: {"rows": 1}),
    Defect(number=4, what="selection spends a second budget", put_back=selection_not_counted,
           caught_by=test_selection.test_a_chain_is_found_and_everything_it_measured_is_kept),
    Defect(number=5, what="asked again, the ledger draws again", put_back=draws_again,
           caught_by=test_ledger.test_the_same_question_is_answered_once),
    Defect(number=6, what="floating-point noise", put_back=float_noise,
           caught_by=test_known_attacks.test_the_digits_of_the_noise_tell_nothing),
    Defect(number=7, what="biased versions are accepted", put_back=biased_sampler,
           caught_by=test_noise.test_biased_and_untested_versions_are_refused,
           arguments=lambda _: {"version": "0.14.1"}),
    Defect(number=7, what="a biased sampler passes the start-up test", put_back=biased_draws,
           caught_by=test_noise.test_the_start_up_test_stops_a_biased_sampler),
    Defect(number=8, what="no guards: noise of 0 gives the counts away", put_back=no_guards,
           caught_by=test_known_attacks.test_the_largest_budget_there_is_still_draws_noise),
    Defect(number=9, what="noise with a seed", put_back=seeded_noise,
           caught_by=test_known_attacks.test_noise_cannot_be_drawn_again_and_subtracted),
    Defect(number=10, what="the formula for continuous noise", put_back=continuous_formula,
           caught_by=test_accounting.test_formulas_that_others_use_are_told_apart),
    Defect(number=11, what="errors that pass on what a library said", put_back=helpful_errors,
           caught_by=test_canary.test_no_failure_gives_a_value_away),
    Defect(number=14, what="a number about the table is printed", put_back=tells_of_the_table,
           caught_by=test_non_interference.test_tables_with_the_same_noisy_counts_look_the_same),
    Defect(number=12, what="pickle is read", put_back=pickle_allowed,
           caught_by=test_artifacts.test_a_forged_posterior_is_refused,
           arguments=lambda folder: {"release": test_artifacts.write_release(folder), "content": ("", PICKLED)}),
    Defect(number=13, what="hashes are not compared", put_back=hashes_not_compared,
           caught_by=test_artifacts.test_a_damaged_file_is_named_by_verify_and_refused_by_readers,
           arguments=lambda folder: {
               "release": test_artifacts.write_release(folder), "name": "noisy_counts.parquet", "change": "edited"}),
    Defect(number=13, what="the manifest is believed", put_back=numbers_believed,
           caught_by=test_verify.test_every_lie_in_the_manifest_is_noticed,
           arguments=lambda folder: {
               "release": measured_release(folder, select=Mst(share=0.2)), "lie": "a smaller epsilon"}),
    Defect(number=15, what="a failed posterior is used", put_back=verdict_ignored,
           caught_by=test_synthesis.test_a_posterior_that_failed_needs_an_explicit_flag),
    Defect(number=16, what="draws that are not finite are read", put_back=not_finite_accepted,
           caught_by=test_artifacts.test_draws_that_are_not_finite_are_refused,
           arguments=lambda folder: {"release": test_artifacts.write_release(folder), "value": math.nan}),
    Defect(number=17, what="a negative variance is kept", put_back=negative_variance_kept,
           caught_by=test_pooling_rules.test_fully_synthetic_falls_back_to_the_within_variance_scaled_by_rows),
]  # fmt: skip


def given(test, request, patch, arguments):
    """The fixtures a test asks for by name."""
    wanted = inspect.signature(test).parameters
    return {
        name: patch
        if name == "monkeypatch"
        else arguments[name]
        if name in arguments
        else request.getfixturevalue(name)
        for name in wanted
    }


@pytest.fixture
def ledger(tmp_path):
    return test_ledger.Ledger(tmp_path / "people.ledger", "people")


def run(defect, request, monkeypatch, folder):
    arguments = defect.arguments(folder)
    noise_module.require_sound_sampler.cache_clear()
    try:
        with monkeypatch.context() as inner:
            defect.caught_by(**given(defect.caught_by, request, inner, arguments))
    finally:
        noise_module.require_sound_sampler.cache_clear()


LONG = (3, 11, 14)
"""Defects whose tests take several seconds."""


@pytest.mark.parametrize(
    "defect",
    [pytest.param(d, marks=pytest.mark.slow if d.number in LONG else ()) for d in DEFECTS],
    ids=lambda d: f"{d.number}: {d.what}".replace(" ", "-"),
)
def test_the_test_against_a_defect_fails_when_it_is_put_back(defect, request, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        defect.put_back(patch)
        try:
            run(defect, request, patch, tmp_path / "given")
        except (ImportError, NameError, TypeError):
            raise  # then the test itself could not run, which proves nothing
        except (Exception, pytest.fail.Exception):
            return
    pytest.fail(f"defect {defect.number} was put back, and {defect.caught_by.__name__} did not notice")


def test_every_defect_has_its_line_in_the_table():
    repository = Path(__file__).parents[2]
    text = (repository / "docs" / "assurance.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and line.split("|")[1].strip().isdecimal()]
    assert [int(row.split("|")[1]) for row in rows] == list(range(1, 18))
    for defect in DEFECTS:
        assert defect.caught_by.__name__ in rows[defect.number - 1], defect.caught_by.__name__
    named = {word.strip("`") for row in rows for word in row.split() if word.strip("`,").startswith("test_")}
    sources = "\n".join(path.read_text("utf-8") for path in (repository / "tests").rglob("test_*.py"))
    assert [name for name in named if f"def {name.strip('`,')}(" not in sources] == []
