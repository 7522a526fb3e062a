"""Shards of one run, measured apart, as one run again: nothing is lost, nothing counts twice."""

from .merged import Merged, merge, merge_suites

__all__ = ["Merged", "merge", "merge_suites"]
