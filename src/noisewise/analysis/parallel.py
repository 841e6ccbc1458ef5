"""Several datasets at a time: as many threads as processors, and no more.

Fits spend their time in NumPy, which lets other threads run. Its linear algebra would start threads of its own in
each of them, as many as there are processors, so that all wait for each other; it is held to one thread meanwhile.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from noisewise.errors import AnalysisError

T = TypeVar("T")


def each(work: Callable[[int], T], count: int, workers: int | None = None) -> list[T]:
    """Results of `work(0)` to `work(count - 1)`, in order; by default a worker per usable processor.

    What comes out does not depend on the number of workers. The first error stops the rest.
    """
    from threadpoolctl import threadpool_limits

    if workers is not None and workers < 1:
        raise AnalysisError(f"workers is {workers}; it needs at least 1.")
    chosen = min(processors() if workers is None else workers, count)
    if chosen <= 1:
        return [work(number) for number in range(count)]
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(chosen) as pool:
        try:
            return list(pool.map(work, range(count)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux; a container or a scheduler may grant fewer than there are
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
