"""The shape of the project: public names, their documentation, and what an import brings in."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import noisewise
from conftest import REPOSITORY
from noisewise.cli import app

SOURCES = sorted((REPOSITORY / "src").rglob("*.py"))
HEAVY = ("jax", "blackjax", "opendp", "duckdb", "ibis", "polars")


def _imported_by(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_the_package_brings_in_almost_nothing():
    modules = _imported_by("import noisewise")

    assert modules.isdisjoint({*HEAVY, "numpy", "pandas", "scipy", "statsmodels", "pyarrow"})


def test_the_analysts_path_needs_none_of_the_holders_libraries():
    code = "from noisewise import analyze, glm, pool, read_release, synthesize, Schema, Workload, report"

    assert _imported_by(code).isdisjoint(HEAVY)


def test_the_command_line_starts_without_heavy_libraries():
    assert _imported_by("import noisewise.cli").isdisjoint({*HEAVY, "statsmodels"})


@pytest.mark.parametrize("name", noisewise.__all__)
def test_public_names_exist_and_are_documented(name):
    assert inspect.getdoc(getattr(noisewise, name))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'measur'"):
        _ = noisewise.measur


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_public_functions_classes_and_fields_are_documented(path):
    undocumented = [name for name, documented in _public(ast.parse(path.read_text("utf-8"))) if not documented]

    assert undocumented == []


def _public(tree: ast.Module) -> list[tuple[str, bool]]:
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found.append((node.name, ast.get_docstring(node) is not None))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found += _fields(node)
    return found


def _fields(node: ast.ClassDef) -> list[tuple[str, bool]]:
    """Annotated fields of a public class; the line after each must be its docstring."""
    found = []
    for here, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name):
            is_text = isinstance(following, ast.Expr) and isinstance(getattr(following.value, "value", None), str)
            known = here.target.id.startswith("_") or "ClassVar" in ast.unparse(here.annotation)
            found.append((f"{node.name}.{here.target.id}", is_text or known))
    return found


def test_every_command_is_documented():
    assert app.registered_commands
    for registered in app.registered_commands:
        assert inspect.getdoc(registered.callback), registered.name


def test_files_stay_small_enough_to_read():
    sizes = {path.name: len(path.read_text("utf-8").splitlines()) for path in SOURCES}

    assert {name: size for name, size in sizes.items() if size > 420} == {}


def test_no_pickle_anywhere():
    for path in SOURCES:
        tree = ast.parse(path.read_text("utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not names & {"pickle", "cloudpickle", "dill", "joblib", "shelve"}, path


def test_data_are_not_in_the_repository():
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    sizes = {name: (REPOSITORY / name).stat().st_size for name in listed.split() if (REPOSITORY / name).exists()}

    assert not [name for name, size in sizes.items() if size > 600_000 or Path(name).suffix in (".parquet", ".npz")]
