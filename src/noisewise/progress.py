"""How long work tells where it is: a function of (what, done, total), silent by default."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with a short description, the steps done and the steps in all (0 if unknown)."""


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""
