"""Do the intervals cover? On the toy process, with the twins that leave out the noise or the pooling."""

import pytest

from statistics_toy import Coverage, coverage


def _mean(shares: dict[str, float]) -> float:
    return sum(shares.values()) / len(shares)


def test_intervals_cover_and_the_broken_twins_do_not():
    measured = coverage(epsilon=0.25, repeats=30, seed=1)

    # 60 intervals: 52 or more hits has probability .99 at coverage .95 and .02 at coverage .75.
    assert _mean(measured.pooled) >= 52 / 60
    assert _mean(measured.one_dataset) < 0.80
    assert _mean(measured.no_noise) < 0.80


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_95_percent_intervals_cover_in_200_repeats(epsilon):
    measured: Coverage = coverage(epsilon=epsilon, repeats=200, seed=2)

    # Binomial(200, .95): [.91, .98] holds with probability .985 for one coefficient.
    assert all(0.91 <= share <= 0.98 for share in measured.pooled.values()), measured
    if epsilon == 0.25:
        assert all(share < 0.80 for share in measured.one_dataset.values()), measured
        assert all(share < 0.80 for share in measured.no_noise.values()), measured
