"""Every code block of README and docs runs; what is generated is fresh; no document names a missing file."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conftest import REPOSITORY
from noisewise.cli import app

DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/**/*.md")])
SHOWN = {"text", "toml", "r", "stata"}  # output, file contents and other languages: shown, run elsewhere or not at all
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(document: Path) -> list[tuple[str, str]]:
    return _BLOCK.findall(document.read_text("utf-8"))


def _named(document: Path) -> str:
    return document.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if any(k == "python" for k, _ in _blocks(d))], ids=_named)
def test_python_blocks_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for language, code in _blocks(document):
        if language == "python":
            exec(compile(code, document.name, "exec"), namespace)


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_blocks_name_their_language_and_commands_exist(document):
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    for language, code in _blocks(document):
        assert language in SHOWN | {"python", "console"}
        for line in code.splitlines() if language == "console" else ():
            words = shlex.split(line, comments=True)
            if words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
            elif words[:1] == ["noisewise"]:
                assert CliRunner().invoke(app, [words[1], "--help"]).exit_code == 0, line
            else:
                assert not words or words[0] in ("pip", "python", "git", "cd", "Rscript"), line


@pytest.mark.parametrize("document", DOCUMENTS, ids=_named)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", document.read_text("utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_files_that_documents_name_exist():
    named = {
        (d.name, path)
        for d in DOCUMENTS
        for path in re.findall(r"`((?:src|tests|docs)/[\w./-]+)`", d.read_text("utf-8"))
    }

    assert {(document, path) for document, path in named if not (REPOSITORY / path).exists()} == set()


def test_commands_are_documented_afresh(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    import reference

    assert (REPOSITORY / "docs" / "commands.md").read_text("utf-8") == reference.reference()
    sys.modules.pop("reference")
