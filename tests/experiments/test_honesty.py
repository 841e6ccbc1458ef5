"""The same marginals, once paid for and once not."""

from experiments import adult
from experiments.honesty import BY_HAND, Selected, honesty
from noisewise.privacy.accounting import PrivacyLoss


def test_counting_the_selection_makes_the_noise_larger_and_nothing_else(data_folder, monkeypatch):
    monkeypatch.setenv("NOISEWISE_DATA", str(data_folder))
    task = honesty().task(1.0, 0)

    counted, free = (Selected(name="s", counted=counted).measured(task) for counted in (True, False))

    chosen = {marginal for marginal in counted.marginals if len(marginal) > 1}
    assert chosen == set(free.marginals)
    assert {tuple(sorted(m, key=adult.schema().index)) for m in BY_HAND} < chosen
    whole = PrivacyLoss(stddevs=tuple(m.stddev for m in free.measurements))
    assert abs(whole.epsilon(task.delta) - 1.0) < 1e-5  # all of the budget measures
    noise = {m.marginal: m.stddev for m in counted.measurements}
    assert all(noise[m.marginal] > m.stddev for m in free.measurements)
    assert counted.privacy.epsilon <= 1.0 + 1e-9
