"""A release's datasets as files for other software, each with a note on how to analyse it."""

from noisewise.exports.formats import Csv, Format, Parquet, Spss, Stata
from noisewise.exports.write import export, export_stacked

__all__ = ["Csv", "Format", "Parquet", "Spss", "Stata", "export", "export_stacked"]
