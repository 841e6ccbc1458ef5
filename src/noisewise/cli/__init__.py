"""The commands: thin over the library, one file per group."""

from noisewise.cli import accounts, checks, demo, export, plan, pool_table, schema_import, schemas, stages
from noisewise.cli.app import app, main

__all__ = [
    "accounts",
    "app",
    "checks",
    "demo",
    "export",
    "main",
    "plan",
    "pool_table",
    "schema_import",
    "schemas",
    "stages",
]
