"""`python -m benchmarks`: list the benchmarks and run them, one process each; or only those that are named.

A benchmark is a file of this folder that can be run by itself; its first line says what it measures. They need a
quiet machine: nothing here is asserted by a test.
"""

import ast
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

FOLDER = Path(__file__).parent


def benchmarks() -> dict[str, str]:
    """What each benchmark measures, by name."""
    found = {}
    for path in sorted(FOLDER.glob("[!_]*.py")):
        text = path.read_text("utf-8")
        if '__name__ == "__main__"' in text:
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Which to run; by default all.")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Say what there is and run nothing.")] = False,
) -> None:
    """Measure speed and memory, side by side with what people use today."""
    known = benchmarks()
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is not a benchmark. Known: {', '.join(known)}.")
    width = max(map(len, known))
    for name, measured in known.items():
        print(f"{name:<{width}}  {measured}")
    failed = [] if list_only else [name for name in names or known if not _run(name)]
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def _run(name: str) -> bool:
    print(f"\n== {name} ==", flush=True)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent, check=False)
    print(f"({time.perf_counter() - start:.0f} s in all)")
    return done.returncode == 0


if __name__ == "__main__":
    typer.run(main)
