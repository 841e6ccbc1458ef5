"""The commands: thin over the library, one file per group."""

from noisewise.cli import (
    accounts,
    certify,
    checks,
    demo,
    export,
    plan,
    pool_table,
    reports,
    schema_import,
    schemas,
    stages,
)
from noisewise.cli.app import app, main

__all__ = [
    "accounts",
    "app",
    "certify",
    "checks",
    "demo",
    "export",
    "main",
    "plan",
    "pool_table",
    "reports",
    "schema_import",
    "schemas",
    "stages",
]
