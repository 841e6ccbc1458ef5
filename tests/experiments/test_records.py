"""A killed run goes on where it stopped; tables say what made them."""

import json

from experiments.records import Estimate, Records, write_table
from experiments.toy import coverage_table


def _estimate(repeat: int, estimate: float = 1.0) -> Estimate:
    return Estimate(
        method="a",
        epsilon=1.0,
        repeat=repeat,
        term="x",
        truth=1.0,
        estimate=estimate,
        stderr=0.1,
        dof=20.0,
        seconds=1.0,
    )


def test_what_is_added_is_read_back(tmp_path):
    records = Records(tmp_path / "deep" / "toy.jsonl")
    records.add([_estimate(0)])
    records.add([_estimate(1)])

    assert records.read() == [_estimate(0), _estimate(1)]
    assert records.done() == {("a", 1.0, 0), ("a", 1.0, 1)}


def test_a_half_written_line_is_dropped_and_done_again(tmp_path):
    records = Records(tmp_path / "toy.jsonl")
    records.add([_estimate(0)])
    with (tmp_path / "toy.jsonl").open("a") as file:
        file.write('[{"method": "a", "eps')

    assert records.done() == {("a", 1.0, 0)}
    records.add([_estimate(1)])
    assert records.read() == [_estimate(0), _estimate(1)]


def test_coverage_counts_intervals_that_hold_the_truth(tmp_path):
    (row,) = coverage_table([_estimate(i, estimate=1.0 if i < 9 else 3.0) for i in range(10)])

    assert row["coverage"] == 0.9
    assert row["coverage_low"] < 0.6  # 9 of 10 says little
    assert row["coverage_high"] > 0.99
    write_table(tmp_path / "toy.csv", [row])
    assert "command" in json.loads((tmp_path / "toy.made.json").read_text())
