"""What all commands share: the application, how progress is shown, and how errors end."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from noisewise.artifacts import Release
from noisewise.errors import NoisewiseError
from noisewise.progress import Progress

STOPPED = 130
EXIT_CODES = """\b
Exit codes: 0 all is well · 1 something failed · 2 wrong options · 3 schema, workload or study file
4 privacy budget · 5 the confidential table does not fit the schema · 6 model or posterior
7 the release is damaged · 8 the analysis · 130 stopped with Ctrl-C"""

app = typer.Typer(
    name="noisewise",
    help=(
        "Differentially private synthetic tables with honest error bars.\n\n"
        "A study goes through the stages measure, fit, synthesize, analyze and report; `run` does them all. Only "
        "`measure` (and `run`) opens the confidential table. Start with: noisewise demo"
    ),
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

ReleaseFolder = Annotated[
    Path, typer.Argument(metavar="RELEASE", help="Folder of the release; a .zip of it where it is only read.")
]
StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file (TOML).")]
AllowUntrusted = Annotated[
    bool, typer.Option("--allow-untrusted", help="Use a posterior whose verdict failed; intervals may not cover.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

screen = Console(highlight=False, soft_wrap=True)
"""Where results go."""
notices = Console(stderr=True, highlight=False, soft_wrap=True)
"""Where progress and errors go, so that results can be piped."""


Registering = Callable[[Callable[..., None]], Callable[..., None]]


def group(name: str, summary: str) -> Callable[[str], Registering]:
    """A group of commands, such as `noisewise ledger show`; what it returns registers one in it."""
    inner = typer.Typer(name=name, help=summary, no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(inner)
    return lambda inside: _registering(inner, inside, f"{name} {inside}")


def command(name: str) -> Registering:
    """Register a command whose errors become one message and an exit code."""
    return _registering(app, name, name)


def _registering(where: typer.Typer, name: str, full_name: str) -> Registering:

    def register(work: Callable[..., None]) -> Callable[..., None]:
        @wraps(work)
        def guarded(*args: Any, **options: Any) -> None:
            stopped = False
            try:
                work(*args, **options)
            except NoisewiseError as error:
                if options.get("debug"):
                    raise
                # A fit that was stopped hands over what it has; what cannot go on with that has been stopped too.
                if not _INTERRUPT.pressed:
                    notices.print(f"noisewise {full_name}: {error}", markup=False, style="red")
                    raise typer.Exit(error.exit_code) from None
            except KeyboardInterrupt:
                stopped = True
            if stopped or _INTERRUPT.pressed:
                notices.print("\nStopped. Nothing half-written is left behind.", style="yellow")
                raise typer.Exit(STOPPED)

        return where.command(name)(guarded)

    return register


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Show a line that moves on a terminal; stay silent in a pipe."""
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn())
    with Bars(*columns, console=notices, transient=True, disable=not notices.is_terminal) as bars:
        task = bars.add_task("starting", total=None)

        def tell(what: str, done: int, total: int) -> None:
            if _INTERRUPT.pressed:
                raise KeyboardInterrupt
            bars.update(task, description=what, completed=done, total=total or None)

        yield tell


def existing(folder: Path) -> Release:
    """The release in a folder; its manifest is read at once, so that a wrong folder is told first."""
    release = Release(folder)
    release.manifest()
    return release


def to_change(folder: Path) -> Release:
    """The release in a folder that is about to be changed; a signed one is refused before any work is done."""
    release = existing(folder)
    release.refuse_if_signed()
    return release


def say(text: Any) -> None:
    """Print a result, as it is."""
    screen.print(text, markup=False)


class _Interrupt:
    """Ctrl-C, taken at the next safe point: an exception raised inside a library's callbacks is lost, or crashes it."""

    pressed = False

    def __call__(self, *_: Any) -> None:
        if self.pressed:
            os._exit(STOPPED)
        self.pressed = True
        os.write(2, b"\nStopping at the next safe point; press Ctrl-C again to stop at once.\n")


_INTERRUPT = _Interrupt()


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _INTERRUPT)
    app()
