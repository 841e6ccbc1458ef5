"""What the operating system is told while records are open: nobody else may read what is written or remembered.

Inside a library `private_files` is all that may be changed without asking: the process is the caller's. A command
opens the table in a process of its own, which `seal_process` closes off for as long as it lives.
"""

import ctypes
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4


_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def private_files() -> Iterator[None]:
    """Whatever is written meanwhile is for its owner only.

    One table is open at a time: the umask, and the filter that keeps warnings unseen, belong to the whole process, and
    a second thread would put them back too early.
    """
    with _ONE_AT_A_TIME:
        before = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(before)


@contextmanager
def unseen_warnings() -> Iterator[None]:
    """No warning raised meanwhile is shown: it may quote a record.

    The filter belongs to the whole process, so this holds the lock of `private_files`: another thread that left its
    own such block in between would put the old filter back.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def seal_process() -> None:
    """Close this process off: private files, no core dump, no debugger, and it dies with the one that started it.

    Ctrl-C is the starter's business: it decides when to stop, and stops this process too.
    """
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ImportError, ValueError, OSError):  # no such limits on this system
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        parent = os.getppid()
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            os._exit(1)
