"""Measuring in processes that die: each attempt is a fork, so that hundreds take seconds. Run as a program.

An attempt is watched from outside: what a killed holder's disk shows is all that is looked at.
"""

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import time
import warnings
from pathlib import Path

from holder import SELECT, Fixed, measure_here, random_table, write_study

from noisewise.artifacts import Release
from noisewise.noisy_counts import NoisyCounts
from noisewise.privacy import noise
from noisewise.privacy.allowance import Allowance
from noisewise.privacy.chain import Chain
from noisewise.privacy.ledger import Ledger

POINTS = {
    "before the debit": (Chain, "append", lambda self, lineage, kind, content: kind == "debited", "before"),
    "after the debit": (Chain, "append", lambda self, lineage, kind, content: kind == "debited", "after"),
    "before the first draw": (Allowance, "gaussian", lambda *_: True, "before"),
    "after the first draw": (Allowance, "gaussian", lambda *_: True, "after"),
    "after the last draw": (Allowance, "refuse_leftovers", lambda *_: True, "after"),
    "before storing": (Chain, "keep", lambda *_: True, "before"),
    "between storing and its entry": (Chain, "keep", lambda *_: True, "after"),
    "before the release": (Release, "write_noisy_counts", lambda *_: True, "before"),
    "before the manifest": (Release, "_write_manifest", lambda *_: True, "before"),
    "after the manifest": (Release, "_write_manifest", lambda *_: True, "after"),
}
"""Where a process is killed on purpose: a method, when, and on which side of it."""


def killed_at(point):
    """Make this process kill itself there."""
    owner, name, matters, side = POINTS[point]
    original = getattr(owner, name)

    def dying(*args, **kwargs):
        if matters(*args, **kwargs) and side == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if matters(*args, **kwargs):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


def attempt(folder, prepare=lambda: None, delay=None):
    """Measure in a forked process; kill it after `delay` seconds, if given. Its code or -signal, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            prepare()
            shutil.rmtree(folder / "release", ignore_errors=True)
            measure_here(folder)
            code = 0
        except Exception as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(code)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return os.waitstatus_to_exitcode(status), pipe.read().decode()


def on_disk(folder):
    """Ledger entries and noisy values, as a stranger finds them after the holder's machine has died."""
    entries, values = [], None
    path = folder / "noisewise.ledger"
    if path.exists() and path.stat().st_size:
        entries = [(e.number, e.kind, e.seal) for e in Ledger(path, "people").entries()]
    parquet = folder / "release" / "noisy_counts.parquet"
    if parquet.exists():
        values = parquet.read_bytes()
    return entries, values


def wrongs(before, after):
    """What must not be: a result without a debit, a shorter or another ledger, two debits for one question."""
    (old, _), (new, values) = before, after
    kinds = [kind for _, kind, _ in new]
    found = []
    if new[: len(old)] != old:
        found.append("the ledger shrank or changed")
    if values is not None and not {"debited", "measured"} <= {*kinds}:
        found.append("noisy counts without a debit")
    if kinds.count("debited") > 1 or kinds.count("measured") > 1:
        found.append("paid or drawn twice")
    if "measured" in kinds and "debited" not in kinds:
        found.append("drawn without a debit")
    return found


def life(folder, number, kills, prepare=None):
    """One holder's study: killed a few times, then finished. What went wrong, and what was seen."""
    write_study(folder, random_table(number), select=SELECT)
    before, wrong, seen, ends = on_disk(folder), [], set(), []
    for kill in kills:
        ends.append(attempt(folder, **kill))
        after = on_disk(folder)
        wrong += wrongs(before, after)
        seen |= {after[1]} - {None}
        before = after
    ends.append(attempt(folder, **({"prepare": prepare} if prepare else {})))
    after, codes = on_disk(folder), [code for code, _ in ends]
    wrong += wrongs(before, after) + ([] if codes[-1] == 0 else ["could not be finished"])
    if seen - {after[1]}:
        wrong.append("drawn again after it was seen")
    if codes[-1] == 0:
        counts: NoisyCounts = Release(folder / "release").noisy_counts()
        entries = Ledger(folder / "noisewise.ledger", "people").entries()
        if counts.hash != next(e.content["hash"] for e in entries if e.kind == "measured"):
            wrong.append("the release is not what the ledger holds")
    return {
        "wrong": wrong,
        "codes": codes,
        "kinds": [kind for _, kind, _ in after[0]],
        "seen": len(seen),
        "said": ends[0][1],
    }


def random_kills(folder, times, seed):
    """Kill at moments spread over a whole measurement, a little beyond its end."""
    stream, start = random.Random(seed), time.monotonic()
    write_study(folder / "warm", random_table(0), select=SELECT)
    attempt(folder / "warm")
    length, results, number = time.monotonic() - start, [], 0
    while sum(len(r["codes"]) - 1 for r in results) < times:
        number += 1
        kills = [{"delay": stream.uniform(0, 1.2 * length)} for _ in range(stream.choice([1, 1, 2, 3]))]
        results.append(life(folder / str(number), number, kills))
    return results


def late_debit():
    """A twin: a ledger that draws first and writes the debit down afterwards."""

    def once(self, asked, loss, budget, schema, draw, *, unit=None):
        counts = draw()
        folder = Path(self.path).parent
        Release(folder / "release").write_noisy_counts(counts)
        os.kill(os.getpid(), signal.SIGKILL)

    Ledger.once = once


def forgetful():
    """A twin: a ledger that draws anew whenever it is asked."""
    original = Ledger.once

    def once(self, asked, loss, budget, schema, draw, *, unit=None):
        original(self, asked, loss, budget, schema, draw, unit=unit)
        return draw()

    Ledger.once = once


def small_files(limit):
    """No file may grow beyond so many bytes: what a full disk does, at every size in turn."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return prepare


def fixed():
    """No real noise."""
    import noisewise.privacy.measure as module

    module.OpenDPNoise = Fixed


def main():
    """Do what the arguments say and print what came out as JSON."""
    warnings.simplefilter("ignore")
    folder, action, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    noise.require_sound_sampler()  # once, before the forks
    import duckdb  # noqa: F401
    import ibis  # noqa: F401

    if action == "random":
        results = random_kills(folder, times, seed=int(time.time()))
    elif action == "points":
        kills = [[{"prepare": lambda p=point: killed_at(p)}] for point in POINTS]
        results = [life(folder / str(n), n, kill) for n, kill in enumerate(kills)]
    elif action == "disk":
        limits = range(0, 40_000, 40_000 // times)
        results = [life(folder / str(n), n, [{"prepare": small_files(limit)}]) for n, limit in enumerate(limits)]
    elif action == "twins":
        results = [life(folder / "late", 1, [{"prepare": late_debit}])]
        results += [life(folder / "forgetful", 1, [{"prepare": forgetful}], prepare=forgetful)]
    print(json.dumps(results), flush=True)
    os._exit(0)  # libraries loaded before the forks do not always end in good order


if __name__ == "__main__":
    sqlite3.enable_callback_tracebacks(False)
    main()
