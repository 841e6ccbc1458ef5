"""The analyst's install, without extras, in a new environment: the script in docs does all that an analyst does."""

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from conftest import REPOSITORY, absent
from noisewise import analyze, glm, read_release, synthesize
from released import make_release

PACKAGE = ("src", "pyproject.toml", "README.md", "LICENSE")
HOLDERS = ("jax", "opendp", "duckdb", "ibis", "blackjax", "pyreadstat", "matplotlib")


def pip(*arguments):
    return subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory):
    """The Python of a new environment that holds the package and what it needs, and nothing else."""
    place = tmp_path_factory.mktemp("clean")
    if pip("download", "--quiet", "--no-deps", "--dest", str(place / "wheels"), "setuptools>=77").returncode:
        absent("pip cannot reach a package index.")
    source = place / "source"  # building leaves files beside the sources
    source.mkdir()
    for name in PACKAGE:
        at = REPOSITORY / name
        (shutil.copytree if at.is_dir() else shutil.copy)(at, source / name)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    python = place / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    constraints = str(REPOSITORY / "constraints.txt")
    done = pip("--python", str(python), "install", "--quiet", "--no-compile", "--constraint", constraints, str(source))
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A release made elsewhere, as a zip file."""
    folder = make_release(tmp_path_factory.mktemp("release") / "people", datasets=20).folder
    return Path(shutil.make_archive(str(folder), "zip", folder))


def run(python, *arguments, cwd):
    """Run as a stranger would: none of this session's paths or variables."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [str(python), "-I", *map(str, arguments)], cwd=cwd, env=plain, capture_output=True, text=True, check=False
    )


def test_the_script_reads_draws_fits_pools_and_exports(clean_python, release, tmp_path):
    done = run(clean_python, REPOSITORY / "docs" / "analyst.py", release, "for-r", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    published = read_release(release)
    datasets = synthesize(published.posterior(), 40, seed=1)
    for number in range(20):
        assert datasets[number].equals(published.datasets()[number])
    expected = analyze(datasets, glm("income ~ owner", family="binomial"))
    assert str(expected.summary()) in done.stdout
    table = pd.read_csv(io.StringIO(done.stdout[done.stdout.index("term,estimate") :]))
    np.testing.assert_allclose(table["conf.low"], expected.conf_int()[0], rtol=1e-9)
    assert len(list((tmp_path / "for-r").glob("dataset-*.csv"))) == 40
    assert (tmp_path / "for-r" / "HOW-TO-ANALYSE.txt").is_file()


def test_nothing_of_the_holders_is_there_and_the_commands_of_the_analyst_run(clean_python, release, tmp_path):
    code = "import importlib.util as u, sys; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    assert run(clean_python, "-c", code, *HOLDERS, cwd=tmp_path).stdout.strip() == "[]"

    command = ("-m", "noisewise")
    analysed = run(clean_python, *command, "analyze", release, cwd=tmp_path)
    assert "income ~ owner" in analysed.stdout, analysed.stderr
    stacked = run(clean_python, *command, "export", release, "all.zip", "--stacked", cwd=tmp_path)
    assert stacked.returncode == 0, stacked.stderr
    assert "datasets.csv" in zipfile.ZipFile(tmp_path / "all.zip").namelist()
    (tmp_path / "r.csv").write_text("dataset,term,estimate,std_error\n1,x,1.0,0.1\n2,x,1.5,0.1\n3,x,0.5,0.1\n")
    pooled = run(clean_python, *command, "pool", "r.csv", "--release", release, "--datasets", "3", cwd=tmp_path)
    assert "x" in pooled.stdout, pooled.stderr


def test_what_needs_an_extra_says_which(clean_python, release, tmp_path):
    spss = run(clean_python, "-m", "noisewise", "export", release, "spss", "--format", "spss", cwd=tmp_path)

    assert spss.returncode == 8
    assert "pip install 'noisewise[export]'" in spss.stderr
    assert not (tmp_path / "spss").exists()
