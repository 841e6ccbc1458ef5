"""The page's tables are those of the CSV files beside it."""

from pathlib import Path

import pytest

from experiments.page import GRIDS, MARK, OTHERS, filled
from experiments.records import write_table

DOCUMENTS = Path(__file__).parents[2] / "docs" / "experiments"


def test_the_page_holds_what_its_tables_say():
    page = (DOCUMENTS / "README.md").read_text("utf-8")

    assert filled(page, DOCUMENTS) == page
    assert {match["name"] for match in MARK.finditer(page)} == {*GRIDS, *OTHERS}


def test_published_and_ours_stand_in_one_cell(tmp_path):
    shown = {"analysis": "logistic", "term": "x1", "repeats": 3, "coverage_low": 0.2, "coverage_high": 1.0}
    ours = [
        shown | {"method": "NAPSU-MQ", "epsilon": "10", "coverage": 1.0, "median_width": 12.34},
        shown | {"method": "NAPSU-MQ", "epsilon": "0.25", "coverage": 0.946, "median_width": 0.5, "repeats": 4},
        shown | {"method": "PEP", "epsilon": "10", "coverage": "", "median_width": ""},
    ]
    write_table(tmp_path / "toy" / "coverage.csv", ours)
    published = {"method": "NAPSU-MQ", "epsilon": "10", "term": "x1", "coverage_published": 0.95, "width_published": ""}
    write_table(tmp_path / "toy" / "published.csv", [published])
    page = "Before.\n<!-- table: {} -->\nold\n<!-- end -->\nAfter.\n"

    assert filled(page.format("toy-coverage"), tmp_path).splitlines()[3:7] == [
        "|  | ε = 0.25 | ε = 10 | repeats |",
        "| --- | --- | --- | --- |",
        "| NAPSU-MQ | .95 | .95 → 1.00 | 4 / 3 |",
        "| PEP | – | – | 0 / 3 |",
    ]
    assert "| NAPSU-MQ | .95 (.20 to 1.00) | 1.00 (.20 to 1.00) | 4 / 3 |" in filled(page.format("toy-bands"), tmp_path)
    assert "| NAPSU-MQ | .50 | 12.3 | 4 / 3 |" in filled(page.format("toy-widths"), tmp_path)
    assert "Nothing was run yet." in filled(page.format("adult-plain"), tmp_path)
    with pytest.raises(ValueError, match="mark for 'magic'"):
        filled(page.format("magic"), tmp_path)
