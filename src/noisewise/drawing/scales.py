"""Scales: from values to places, with round numbers to read them by."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A linear scale from values to pixels."""

    low: float
    """Value at the left end."""
    high: float
    """Value at the right end."""
    start: float
    """Pixel of the left end."""
    stop: float
    """Pixel of the right end."""

    def __call__(self, value: float) -> float:
        """Where a value is; one beyond an end is put on the end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0)

    def ticks(self, most: int = 4) -> list[float]:
        """Round values between the ends: steps of 1, 2 or 5 times a power of ten."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        rough = span / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A round value in few letters: 20k for twenty thousand, 2M for two million."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}".replace("-", "−")
    return f"{value:g}".replace("-", "−")
