"""The published experiments, rerun with the methods they compare. Not part of the installed package."""
