"""The commands: thin over the library, one file per group."""

from noisewise.cli import demo, stages
from noisewise.cli.app import app, main

__all__ = ["app", "demo", "main", "stages"]
