"""What tests share: where the real tables are, and a small study to start from."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real tables: $NOISEWISE_DATA, or the one beside the repository. In CI it must be there."""
    folder = Path(os.environ.get("NOISEWISE_DATA", REPOSITORY.parent / "shared" / "data"))
    if folder.is_dir():
        return folder
    if os.environ.get("CI"):
        pytest.fail(f"The real tables are missing at {folder}; in CI they must be there.")
    pytest.skip(f"The real tables are not at {folder}; set NOISEWISE_DATA to run this test.")


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server on loopback; see `postgres_server.PostgresServer`."""
    from postgres_server import binaries, running_server

    programs = binaries()
    if programs is None:
        absent("PostgreSQL's server is not installed: on Debian, the package postgresql.")
    with running_server(programs) as server:
        yield server


def absent(what: str) -> NoReturn:
    """Skip for want of something on this machine; in CI it must be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} In CI it must be there.")
    pytest.skip(what)
