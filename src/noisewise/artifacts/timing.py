"""How long the fit took here: kept beside a release and never in it, where equal content gives equal bytes.

Only the fit is timed. It sees nothing but noisy counts; how long the private act takes depends on the confidential
table, and is written down nowhere.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from noisewise.artifacts.files import write

_MOST_BYTES = 10_000


class Timing(BaseModel):
    """What is known about the time a posterior took, on the machine that made it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    posterior_hash: str
    """The posterior that was made; the times are nobody else's."""
    fit_seconds: float = Field(ge=0, allow_inf_nan=False)
    """Seconds from the noisy counts to the verdict, by the clock on the wall."""
    processors: int = Field(ge=1)
    """Processors that could be used."""

    @property
    def words(self) -> str:
        """The time as people say it."""
        minutes, seconds = divmod(round(self.fit_seconds), 60)
        took = f"{minutes} min {seconds} s" if minutes else f"{self.fit_seconds:.1f} s"
        return f"{took} on {self.processors} {'processor' if self.processors == 1 else 'processors'}"


def timing_path(folder: Path) -> Path:
    """The file beside a release's folder."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.timing.json")


def write_timing(folder: Path, timing: Timing) -> None:
    """Keep a timing, in place of an earlier one."""
    write(timing_path(folder), (timing.model_dump_json(indent=1) + "\n").encode())


def read_timing(folder: Path, posterior_hash: str) -> Timing | None:
    """The timing of this very posterior; None where there is none that can be read."""
    try:
        with timing_path(folder).open("rb") as file:
            timing = Timing.model_validate_json(file.read(_MOST_BYTES))
    except (OSError, ValidationError):
        return None
    return timing if timing.posterior_hash == posterior_hash else None
