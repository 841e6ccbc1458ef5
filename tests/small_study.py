"""A study small enough to run in a second, for tests of everything around it."""

import csv
import random
from pathlib import Path

from noisewise.study import Study

SMALL_SCHEMA = """
name = "small"

[[column]]
name = "x"
type = "boolean"

[[column]]
name = "y"
type = "categorical"
levels = ["no", "yes"]
"""

SMALL_STUDY = """
[data]
source = "table.csv"

[schema]
file = "table.schema.toml"

[privacy]
epsilon = 1.0

[synthesis]
datasets = 20

[[analysis]]
model = "binomial"
formula = "y ~ x"
"""


def small_table(path: Path, rows: int = 1000) -> Path:
    """Write a CSV whose y depends on x."""
    generator = random.Random(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "y"])
        for _ in range(rows):
            x = generator.random() < 0.5
            writer.writerow([x, "yes" if generator.random() < (0.6 if x else 0.4) else "no"])
    return path


def small_study(folder: Path, text: str = SMALL_STUDY) -> Study:
    """Write table, schema and study into a folder and load the study."""
    small_table(folder / "table.csv")
    (folder / "table.schema.toml").write_text(SMALL_SCHEMA)
    (folder / "study.toml").write_text(text)
    return Study.load(folder / "study.toml")
