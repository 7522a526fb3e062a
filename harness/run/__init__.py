"""The parent: what a run measures, in which order, in which processes, and what becomes of each
case.
"""
