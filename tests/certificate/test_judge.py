"""Verdicts: from counts of hits to words, with a reason for each."""

import numpy as np
import pytest
from scipy.stats import binomtest

from noisewise.certificate.judge import binomial_band, judge, too_few
from noisewise.certificate.repeat import LEVELS

TITLE = "y ~ a"


def records(repeats=100, hits=95, *, stressed=False, supported=True, ratio=2.0, first=0, **changes):
    """Repeats with so many hits at every level in proportion to the level's own."""
    made = []
    for number in range(repeats):
        inside = number < hits
        term = {
            "term": "a",
            "variables": ["a", "y"],
            "supported": supported,
            "truth": 1.0,
            "estimate": 1.0 + (-1) ** number * 0.01,
            "stderr": 0.1,
            "intervals": [[0.5, 1.5] if inside and number < hits * level / 0.95 else [2.0, 3.0] for level in LEVELS],
            "reference": 1.0,
            "halves": [0.5 / ratio] * len(LEVELS),
            "fallback": False,
            "caution": False,
        }
        terms = {"terms": [term | changes.get("term", {})], "truth": "known"}
        made.append(
            {
                "number": first + number,
                "stressed": stressed,
                "trusted": changes.get("trusted", True),
                "analyses": {TITLE: changes.get("analysis", terms)},
            }
        )
    return made


def verdict(*parts):
    (term,) = judge(TITLE, [record for part in parts for record in part]).terms
    return term.verdict, " ".join(term.reasons)


@pytest.mark.parametrize(("hits", "word"), [(95, "holds"), (90, "holds"), (88, "doubtful"), (86, "fails")])
def test_coverage_decides(hits, word):
    assert verdict(records(hits=hits))[0] == word


@pytest.mark.parametrize("repeats", [20, 100, 400])
@pytest.mark.parametrize("level", LEVELS)
def test_limits_are_those_of_the_binomial_distribution(repeats, level):
    for hits in range(repeats + 1):
        chance = binomtest(hits, repeats, level, alternative="less").pvalue
        expected = "fails" if chance < 1e-3 else "doubtful" if chance < 1e-2 else None
        assert too_few(hits, repeats, level) == expected


def test_the_band_is_that_of_clopper_and_pearson():
    for hits in (0, 3, 95, 100):
        wanted = binomtest(hits, 100).proportion_ci(method="exact")
        assert binomial_band(hits, 100) == pytest.approx((wanted.low, wanted.high), rel=1e-5, abs=1e-9)


def test_an_honest_interval_is_seldom_accused_and_one_that_covers_70_percent_is_caught():
    random = np.random.default_rng(0)
    honest = [too_few(int(hits), 100, 0.95) for hits in random.binomial(100, 0.95, 20_000)]
    broken = [too_few(int(hits), 100, 0.95) for hits in random.binomial(100, 0.70, 2_000)]

    # P(hits ≤ 86) = 0.0005 and P(hits ≤ 88) = 0.0043; five standard errors are 0.0008 and 0.0023.
    assert np.mean([word == "fails" for word in honest]) < 0.0005 + 0.0008
    assert np.mean([word is not None for word in honest]) < 0.0043 + 0.0023
    # P(hits ≥ 87 | 0.7) = 0.00005.
    assert np.mean([word == "fails" for word in broken]) > 0.999


def test_an_unsupported_term_is_doubtful_at_best_and_fails_where_an_association_breaks_it():
    unsupported = records(supported=False)

    alone, reason = verdict(unsupported)
    harmless, _ = verdict(unsupported, records(25, 24, stressed=True, supported=False))
    broken, why = verdict(unsupported, records(25, 3, stressed=True, supported=False))

    assert (alone, harmless, broken) == ("doubtful", "doubtful", "fails")
    assert "Unsupported: a × y were not measured together" in reason
    assert "3 of 25 rehearsals" in why


def test_a_supported_term_whose_neighbours_were_not_measured_is_doubtful_where_that_matters():
    assert verdict(records(), records(25, 24, stressed=True))[0] == "holds"
    word, why = verdict(records(), records(25, 10, stressed=True))
    assert (word, "adjusted for columns that were not measured together" in why) == ("doubtful", True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"repeats": 12, "hits": 12}, "Only 12 rehearsals"),
        ({"ratio": 17.0}, "Too little signal: its interval is 17 times as wide"),
        ({"term": {"caution": True}}, "Too few datasets"),
        ({"term": {"fallback": True}}, "fallback in 100 of 100"),
        ({"term": {"supported": None}}, "not known which columns"),
        ({"trusted": False}, "failed its checks in 100%"),
    ],
)
def test_other_doubts_have_their_reason(changes, reason):
    word, why = verdict(records(**changes))

    assert word == "doubtful"
    assert reason in why


def test_repeats_that_could_not_be_pooled_are_counted():
    failed = records(15, first=100, analysis={"failed": "Term 'a' is gone."})
    judged = judge(TITLE, [*records(85, 81), *failed])

    assert judged.failed == 15
    assert judged.failure == "Term 'a' is gone."
    assert "could not be pooled in 15% of the rehearsals" in " ".join(judged.terms[0].reasons)
