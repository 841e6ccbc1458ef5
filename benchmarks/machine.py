"""What a figure depends on: processor, load, and versions."""

import importlib.metadata
import os
import platform
from pathlib import Path


def about(*packages: str) -> str:
    """The machine in one line, the versions in another."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return (
        f"{_processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n"
        f"Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text("utf-8").splitlines() if known.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
