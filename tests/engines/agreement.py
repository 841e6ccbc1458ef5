"""Asking an engine for the level of every odd value, and comparing with plain Python."""

from engines.odd_values import CASES, odd_table
from noisewise.confidential.codes import level_codes
from noisewise.confidential.sources import opened
from oracles.plain_levels import level


def codes_in(data) -> dict[int, list[int]]:
    """The codes of every case's values, as the engine computes them, in the order of the rows."""
    with opened(data) as source:
        values = source.table.select(**{name: source.column(name) for name in source.names})
        codes = level_codes(values, {f"c{i}": column for i, (column, _, _) in enumerate(CASES)}, ("id",))
        found = source.run(source.backend.compile(codes))
    found = found[found[:, -1].argsort()]
    return {i: found[:, i].tolist() for i in range(len(CASES))}


def differences(found: dict[int, list[int]]) -> list[str]:
    """Every value whose code is not the one that plain Python gives it."""
    table = odd_table()
    return [
        f"{column.name} as {kind}: {value!r} has code {got} and should have {level(column, value)}"
        for i, (column, _, kind) in enumerate(CASES)
        for value, got in zip(table[f"c{i}"].to_pylist(), found[i], strict=True)
        if got != level(column, value)
    ]
