"""What tests share: where the real tables are, and a small study to start from."""

import os
from pathlib import Path

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
