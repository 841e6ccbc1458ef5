"""Our accounting lies inside the bracket that an independent accountant proves for it.

dp-accounting computes privacy loss distributions on a grid and rounds them down or up. It needs an older attrs than
the rest, so it has a folder of its own (`make accountant`) and runs in a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY
from noisewise.privacy.accounting import PrivacyLoss, calibrate

ADULT = 46043**-2


@pytest.fixture(scope="module")
def bracket():
    """Lower and upper bound of ε for stddevs and δ."""
    folder = Path(os.environ.get("NOISEWISE_ACCOUNTANT", REPOSITORY / ".venv" / "accountant"))
    if not (folder / "dp_accounting").is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"dp-accounting is missing at {folder}; run: make accountant")
        pytest.skip(f"dp-accounting is not at {folder}; run: make accountant")

    def ask(stddevs, delta, grid):
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        script = REPOSITORY / "tests" / "oracles" / "second_accountant.py"
        question = json.dumps([list(stddevs), delta, grid])
        done = subprocess.run(
            [sys.executable, script, question], env=environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return ask


@pytest.mark.parametrize(("epsilon", "grid"), [(0.1, 1e-6), (1.0, 1e-5), (3.0, 1e-5)])
def test_equal_noise_lies_in_the_bracket(bracket, epsilon, grid):
    noise = calibrate(epsilon, ADULT, [1.0] * 10)
    low, high = bracket(noise, ADULT, grid)

    assert low <= PrivacyLoss(stddevs=noise).epsilon(ADULT) <= high + 1e-6
    assert high - low < 5e-3 * epsilon
    narrower = PrivacyLoss(stddevs=tuple(0.995 * s for s in noise)).epsilon(ADULT)
    half_of_k = PrivacyLoss(stddevs=tuple(2**0.5 * s for s in noise)).epsilon(ADULT)
    assert not low <= narrower <= high  # the bracket tells half a percent of noise
    assert not low <= half_of_k <= high  # K = marginals instead of 2·marginals


def test_unequal_noise_lies_above_the_lower_end_and_close_to_it(bracket):
    noise = calibrate(1.0, ADULT, [1.0] * 6 + [2.0**0.5] * 4)
    low, high = bracket(noise, ADULT, 1e-5)

    assert low <= PrivacyLoss(stddevs=noise).epsilon(ADULT) <= 1.002 * high
