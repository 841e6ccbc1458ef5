"""Synthetic datasets: one posterior draw per dataset, rows independent given the draw.

Nothing here needs more than NumPy and PyArrow, so that an analyst can draw further datasets from a release. A dataset
is drawn in partitions of a fixed size. Partition j of dataset i is drawn from a random stream of its own, derived from
the seed, i and j: the same rows come out in another process, on another machine of a cluster, for any one partition
alone, and whatever the order; and no more than a partition need be in memory.
"""

from noisewise.synthesis.drawn import MAX_SEED, DrawnDatasets, synthesize
from noisewise.synthesis.series import PARTITION_ROWS, SomeDatasets, SyntheticDatasets
from noisewise.synthesis.spark import SparkDatasets, on_spark
from noisewise.synthesis.stored import StoredDatasets
from noisewise.synthesis.writing import write_datasets, write_partitions

__all__ = [
    "MAX_SEED",
    "PARTITION_ROWS",
    "DrawnDatasets",
    "SomeDatasets",
    "SparkDatasets",
    "StoredDatasets",
    "SyntheticDatasets",
    "on_spark",
    "synthesize",
    "write_datasets",
    "write_partitions",
]
