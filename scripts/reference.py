"""Write docs/commands.md from the commands' own help; with --check, only say whether it is fresh."""

import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from noisewise.cli import app

TARGET = Path(__file__).parent.parent / "docs" / "commands.md"
HEAD = "# Commands\n\nGenerated from the commands' own help by `make docs`.\n"


def reference() -> str:
    """The help of every command, in their order."""
    group: Any = get_command(app)
    parts = [HEAD, _help("noisewise", group)]
    for name, sub in group.commands.items():
        parts.append(_help(f"noisewise {name}", sub))
        parts += [_help(f"noisewise {name} {inner}", one) for inner, one in getattr(sub, "commands", {}).items()]
    return "\n".join(parts)


def _help(path: str, command: Any) -> str:
    context = command.make_context(path, [], resilient_parsing=True, terminal_width=100, max_content_width=100)
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return f"## {path}\n\n```text\n" + "\n".join(lines).strip() + "\n```\n"


def main() -> int:
    """Write or check."""
    text = reference()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, "utf-8")
        return 0
    if not TARGET.exists() or TARGET.read_text("utf-8") != text:
        print(f"{TARGET.name} is out of date. Run: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
