"""What a fit needs, in memory and time: an estimate from the model's size, to plan with and not to rely on.

Memory is what the sampler keeps for every draw (the parameters and the expected counts, twice while they are judged)
and, for each chain, some numbers per cell. Time is the number of times that the density is evaluated times what one
evaluation costs, and both grow with the cells. The constants are those of Adult with ten marginals (164 measured cells,
160 in cliques): 4 seconds of one core and 380 MB. Where many cells are lost in the noise chains need several times as
many draws, which a plan cannot know.
"""

from dataclasses import dataclass

CHAINS = 8
DRAWS = 600
"""Draws of each chain that a verdict usually needs."""
NUMBER = 8
"""Bytes of a number."""
BASE_MEMORY = 350_000_000
"""What Python and its libraries take by themselves."""
NUMBERS_PER_CELL = 40
"""Numbers that a chain keeps for a cell while it computes."""
BASE_SECONDS = 2.0
"""What a fit of a few cells takes."""
SECONDS_PER_CELL = 0.01
"""What each cell adds: some thousand evaluations of all chains."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What a fit is expected to need."""

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


def effort(parameters: int, measured_cells: int, clique_cells: int) -> Effort:
    """What a fit of a model of this size is expected to need."""
    kept = 2 * CHAINS * DRAWS * (parameters + measured_cells)
    working = CHAINS * NUMBERS_PER_CELL * (measured_cells + clique_cells)
    return Effort(
        memory=BASE_MEMORY + NUMBER * (kept + working),
        seconds=BASE_SECONDS + SECONDS_PER_CELL * (measured_cells + clique_cells),
    )


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1e9:.1f} GB" if bytes_ >= 1e9 else f"{round(bytes_ / 1e7) * 10} MB"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    minutes = seconds / 60
    return f"{round(minutes)} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
