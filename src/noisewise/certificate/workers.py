"""Repeats in several processes, each with its own share of the processors and its own compiled functions.

A worker is held to one processor (where the system can do that), so that linear algebra, the compiler and the
threads of the analyses start as many threads as it has: one. What a worker compiles for its first repeat serves all its
others.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from noisewise.analysis.parallel import processors
from noisewise.certificate.repeat import Plan, repeat
from noisewise.errors import FitError
from noisewise.progress import Progress

Task = tuple[int, bool]
"""The number of a repeat, and whether its population is stressed."""
_LOOK_EVERY = 0.2  # seconds between two looks at Ctrl-C
_given: dict[str, Plan] = {}


def in_processes(plan: Plan, tasks: Sequence[Task], workers: int, progress: Progress) -> Iterator[dict[str, Any]]:
    """Compute the repeats; each is yielded when it is done."""
    context = multiprocessing.get_context("spawn")
    places = context.Queue()
    for number in range(workers):
        places.put(number)
    pool = ProcessPoolExecutor(workers, context, _prepare, (plan, places))
    try:
        running = {pool.submit(_work, *task) for task in tasks}
        while running:
            done, running = wait(running, timeout=_LOOK_EVERY, return_when=FIRST_COMPLETED)
            progress("rehearsing", len(tasks) - len(running), len(tasks))
            for one in done:
                yield one.result()
    except BrokenProcessPool:
        raise FitError(
            "A process that rehearses ended without an answer, perhaps for want of memory. Run the same command "
            "again: what is done is kept. Fewer processes need less memory: --workers 1."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(plan: Plan, places: Any) -> None:
    """What a worker does first: take its processor, leave Ctrl-C to the parent, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    place = places.get()
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {usable[place % len(usable)]})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    parent = multiprocessing.parent_process()
    assert parent is not None  # this is a worker
    threading.Thread(target=_outlive_nobody, args=(parent,), daemon=True).start()
    _given["plan"] = plan


def _outlive_nobody(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _work(number: int, stressed: bool) -> dict[str, Any]:
    return repeat(_given["plan"], number, stressed)


def default_workers() -> int:
    """One per usable processor."""
    return processors()
