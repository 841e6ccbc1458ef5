"""The commands: thin over the library, one file per group."""

from noisewise.cli import demo, export, pool_table, stages
from noisewise.cli.app import app, main

__all__ = ["app", "demo", "export", "main", "pool_table", "stages"]
