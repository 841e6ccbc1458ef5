"""Attacks share a folder of their own modules, as `tests/privacy` does with its."""

import sys
from pathlib import Path

for folder in ("attacks", "privacy", "analysis", "cli"):
    sys.path.insert(0, str(Path(__file__).parent.parent / folder))
