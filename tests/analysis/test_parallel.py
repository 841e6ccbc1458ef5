"""Several datasets at a time give what one at a time gives, and never more threads than processors."""

import threading
import time

import numpy as np
import pandas as pd
import pytest

from noisewise.analysis import Bootstrap, Custom
from noisewise.analysis.parallel import each, processors
from noisewise.errors import AnalysisError


def test_results_are_in_order_whatever_the_number_of_workers():
    def slow_first(number):
        time.sleep(0.02 if number == 0 else 0)
        return number

    assert each(slow_first, 5, workers=3) == each(slow_first, 5, workers=1) == [0, 1, 2, 3, 4]
    assert each(slow_first, 0) == []


def test_no_more_threads_work_than_asked_for_and_linear_algebra_adds_none():
    from threadpoolctl import threadpool_info

    working, most, blas, lock = [0], [0], set(), threading.Lock()

    def work(number):
        with lock:
            working[0] += 1
            most[0] = max(most[0], working[0])
            blas.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        time.sleep(0.005)
        with lock:
            working[0] -= 1

    each(work, 12, workers=3)

    assert 1 < most[0] <= 3
    assert blas == {1}


def test_by_default_there_is_a_worker_per_usable_processor():
    names = set()

    def work(number):
        names.add(threading.current_thread().name)
        time.sleep(0.002)

    each(work, 40)

    assert len(names) <= processors()


def test_the_first_error_stops_the_rest():
    done = []

    def work(number):
        done.append(number)
        if number == 0:
            raise ValueError("no")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="no"):
        each(work, 100, workers=2)
    assert len(done) < 100


def test_workers_change_nothing_in_the_estimates():
    frames = [pd.DataFrame({"y": np.random.default_rng(i).normal(size=80)}) for i in range(6)]
    one = Bootstrap(lambda frame: frame["y"].mean(), resamples=10).fit(frames)
    two = Bootstrap(lambda frame: frame["y"].mean(), resamples=10, workers=2).fit(frames)

    assert (one.values == two.values).all()
    assert (one.covariances == two.covariances).all()


def test_no_workers_are_refused():
    with pytest.raises(AnalysisError, match="workers is 0"):
        Custom(lambda frame: (1.0, 1.0), workers=0).fit([pd.DataFrame({"y": [1]})])
