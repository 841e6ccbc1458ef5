"""What a fit needs, in memory and time: an estimate from the model's size, to plan with and not to rely on.

It goes by the cells that are measured and the cells of the tables the model keeps, together. `MEASURED` says what fits
of the examples took; in between the logarithms lie on straight lines, and beyond all is in proportion to the cells.
Where many cells are lost in the noise chains need several times as many draws, which a plan cannot know.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MEASURED = ((324, 5.8, 387), (1554, 19.0, 757), (3896, 138.0, 1100))
"""Cells, processor seconds and peak memory in MB of the examples: `python -m benchmarks.effort` measures them again."""

BASE_MEMORY = 150
"""What Python and its libraries take by themselves, in MB."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a fit is expected to need."""

    cells: int
    """What the estimate goes by: the cells that are measured, and those of the tables that the model keeps."""
    memory: int
    """Bytes."""
    seconds: float
    """On one core."""

    @property
    def sentence(self) -> str:
        """In words."""
        return (
            f"A fit needs about {_size(self.memory)} of memory and {_duration(self.seconds)} on one core, or several "
            "times as long where many cells are lost in the noise."
        )


def effort(measured_cells: int, clique_cells: int) -> Effort:
    """What a fit of a model of this size is expected to need."""
    cells = measured_cells + clique_cells
    seconds = [seconds for _, seconds, _ in MEASURED]
    kept = [memory - BASE_MEMORY for _, _, memory in MEASURED]
    return Effort(
        cells=cells, seconds=_between(cells, seconds), memory=int(1e6 * (BASE_MEMORY + _between(cells, kept)))
    )


def _between(cells: int, values: Sequence[float]) -> float:
    """What lies between the values that were measured; beyond them in proportion to the cells."""
    known = [cells for cells, *_ in MEASURED]
    inside = min(max(cells, known[0]), known[-1])
    found = math.exp(np.interp(math.log(inside), np.log(known), np.log(values)))
    return found * cells / inside


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1e9:.1f} GB" if bytes_ >= 1e9 else f"{round(bytes_ / 1e7) * 10} MB"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    minutes = seconds / 60
    return f"{round(minutes)} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
