"""Fetch the real tables from their publishers, for a machine with internet, and refuse what is not them.

Adult and the Massachusetts excerpt are checked by SHA-256. No checksum of the whole census file is known to us: it is
checked by its first 1,000 rows (which we have), by its number of rows, and by its number of people who served.
"""

import hashlib
import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path

from experiments import census

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
SOURCES = {
    "adult": (f"{UCI}/adult/adult.data", f"{UCI}/adult/adult.test"),
    "census": (f"{UCI}/census1990-mld/USCensus1990.data.txt",),
    "sdnist": (
        "https://raw.githubusercontent.com/usnistgov/SDNist/main/"
        "nist%20diverse%20communities%20data%20excerpts/massachusetts/ma2019.csv",
    ),
}
SHA256 = {
    "adult": "59c40ad72daa44fb3353d74e5cd619de74dd34c37fb20117238abd4e5b6c109b",
    "sdnist": "5489f7d45bccad8ae591dfe9011638def521b3f8641edf169bb45fea2c62fb44",
}
ADULT_HEADER = (
    "age,workclass,fnlwgt,education,educational-num,marital-status,occupation,relationship,race,gender,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
Download = Callable[[str, Path], None]


def download(address: str, path: Path) -> None:
    """One file from the internet."""
    with urllib.request.urlopen(address, timeout=60) as source, path.open("wb") as file:  # noqa: S310  # ours
        shutil.copyfileobj(source, file)


def fetch(name: str, folder: Path, download: Download = download) -> Path:
    """Download one table, check it, and put it where its experiment looks; what fails the check is removed."""
    if name not in SOURCES:
        raise ValueError(f"{name!r} is not a table that can be fetched. There are: {', '.join(SOURCES)}.")
    target = {
        "adult": folder / "adult" / "adult.csv",
        "census": folder / "census1990" / "USCensus1990.data.txt",
        "sdnist": folder / "sdnist" / "sdnist_ma2019.csv",
    }[name]
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = [target.with_name(f"{target.name}.part{i}") for i in range(len(SOURCES[name]))]
    try:
        for address, part in zip(SOURCES[name], parts, strict=True):
            download(address, part)
        if name == "adult":
            parts[0].write_text(join_adult(*(part.read_text("ascii") for part in parts)), "ascii")
        _check(name, parts[0])
        parts[0].replace(target)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return target


def join_adult(train: str, test: str) -> str:
    """The training and the test file as one table with a header, labels without their trailing points."""
    lines = [ADULT_HEADER]
    for line in (*train.splitlines(), *test.splitlines()):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == ADULT_HEADER.count(",") + 1:  # the test file begins with a remark; both end with empty lines
            lines.append(",".join([*fields[:-1], fields[-1].rstrip(".")]))
    return "\n".join(lines) + "\n"


def _check(name: str, path: Path) -> None:
    if name == "census":
        census.load(path)
        return
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[name]:
        raise ValueError(
            f"What was downloaded for {name} has SHA-256 {found}, and the known table has {SHA256[name]}. It was "
            "removed. Get the file by hand and compare; the publisher may have changed it."
        )
