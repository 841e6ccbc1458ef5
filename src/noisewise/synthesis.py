"""Synthetic datasets: one posterior draw per dataset, rows independent given the draw."""

from collections.abc import Sequence

import pyarrow as pa

from noisewise.schema import Schema
from noisewise.workload import Marginal


class SyntheticDatasets(Sequence[pa.Table]):
    """m synthetic datasets, each an Arrow table made (or read) only when it is asked for."""

    schema: Schema
    """The public schema; categorical columns come dictionary-encoded with all of its levels."""
    rows: int
    """Rows of each synthetic dataset."""
    original_rows: int
    """Rows of the confidential table; public."""
    marginals: tuple[Marginal, ...]
    """The marginals that were measured: what the release can support."""
