"""Where the real tables are: a folder that is given, never part of this repository."""

import os
from pathlib import Path

from experiments.records import REPOSITORY


def data_folder() -> Path:
    """$NOISEWISE_DATA, or the folder beside the repository."""
    beside = (REPOSITORY.parent / "shared" / "data", REPOSITORY.parent.parent / "shared" / "data", REPOSITORY / "data")
    candidates = [Path(os.environ["NOISEWISE_DATA"])] if "NOISEWISE_DATA" in os.environ else list(beside)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"There are no data at {candidates[0]}. Set NOISEWISE_DATA, or fetch them with `python -m experiments fetch`."
    )


def data_file(*parts: str) -> Path:
    """A file of the data folder."""
    path = data_folder().joinpath(*parts)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing. Fetch it with `python -m experiments fetch`, or put it there.")
    return path
