"""The public schema: what a table may hold, written by a person and never read off the data.

The schema fixes the domain of every column, so that nothing about the domain of a release depends on the
confidential records. Its order is the canonical order of everything downstream: columns in the order
they are written, and within a column the declared levels, then `other`, then missing. docs/schema.md is the
reference, by example.
"""

from noisewise.schema.bought import EvenGrid, QuantileNumeric
from noisewise.schema.categorical import Boolean, Categorical
from noisewise.schema.column import MISSING_LABEL, ColumnKind
from noisewise.schema.numeric import Numeric
from noisewise.schema.rules import Box, Rule
from noisewise.schema.table import Column, Schema
from noisewise.schema.temporal import Date, Datetime, Moments

__all__ = [
    "MISSING_LABEL",
    "Boolean",
    "Box",
    "Categorical",
    "Column",
    "ColumnKind",
    "Date",
    "Datetime",
    "EvenGrid",
    "Moments",
    "Numeric",
    "QuantileNumeric",
    "Rule",
    "Schema",
]
