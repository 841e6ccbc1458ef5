"""Run what is not done yet, one process per worker, each with its own share of the processors."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from experiments.distances import distances
from experiments.experiment import Experiment
from experiments.readings import read
from experiments.records import Records, Run, commit
from experiments.task import Method

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One method, once, at one budget."""

    experiment: str
    """Name of the experiment."""
    method: str
    """Name of the method."""
    epsilon: float
    """Budget."""
    repeat: int
    """Number of the repeat."""
    code: str
    """Commit of the code."""


def jobs(
    experiment: Experiment, records: Records, repeats: int, epsilons: Sequence[float], methods: Sequence[Method]
) -> list[Job]:
    """What is left to do: repeat by repeat, so that what is there at any time is balanced."""
    done, code = records.done(), commit()
    return [
        Job(experiment=experiment.name, method=method.name, epsilon=epsilon, repeat=repeat, code=code)
        for repeat in range(repeats)
        for epsilon in epsilons
        for method in methods
        if (repr(method), epsilon, repeat) not in done
    ]


def run(todo: Sequence[Job], records: Records, workers: int, tell: Tell) -> None:
    """Do the jobs; each is recorded as soon as it is finished."""
    for number, finished in enumerate(_finished(todo, workers), start=1):
        records.add(finished)
        tell(
            f"{number} of {len(todo)}: repeat {finished.repeat}, ε = {finished.epsilon:g}, {finished.method}: "
            f"{finished.seconds['datasets']:.1f} s"
        )


def _finished(todo: Sequence[Job], workers: int) -> Iterator[Run]:
    if workers == 1:
        yield from map(do, todo)
        return
    context = multiprocessing.get_context("spawn")  # JAX does not survive a fork
    counter = context.Value("i", 0)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_take_share, initargs=(counter, workers)) as pool:
        try:
            for future in as_completed([pool.submit(do, job) for job in todo]):
                yield future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _take_share(counter: Any, workers: int) -> None:
    """Keep this process to its share of the processors: every library then starts as many threads as there are."""
    if not hasattr(os, "sched_setaffinity"):
        return
    with counter.get_lock():
        number, counter.value = counter.value, counter.value + 1
    available = sorted(os.sched_getaffinity(0))
    share = available[number % workers :: workers]
    os.sched_setaffinity(0, share or available)


def do(job: Job) -> Run:
    """Run one method and read its datasets."""
    from experiments.registry import experiment_named

    experiment = experiment_named(job.experiment)
    method, task = experiment.method(job.method), experiment.task(job.epsilon, job.repeat)
    start, used = time.perf_counter(), time.process_time()
    datasets = method.datasets(task)
    between, used = time.perf_counter(), time.process_time() - used
    readings = [
        reading
        for analysis in experiment.analyses
        for reading in read(datasets, analysis, experiment.pools, task.rows, task.seed_of("analysis"))
    ]
    end = time.perf_counter()
    return Run(
        method=method.name,
        settings=repr(method),
        epsilon=job.epsilon,
        repeat=job.repeat,
        code=job.code,
        seconds={
            "datasets": round(between - start, 3),
            "processor": round(used, 3),
            "analysis": round(end - between, 3),
        },
        numbers=getattr(datasets, "numbers", {}),
        distances=distances(datasets, task.confidential),
        readings=tuple(readings),
    )
