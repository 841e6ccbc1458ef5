"""Differentially private synthetic tables with honest error bars."""
