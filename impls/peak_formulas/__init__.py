"""Closed formulas of a call's peak bytes, a file per backend, found by its name."""
