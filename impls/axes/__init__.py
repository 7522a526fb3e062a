"""Axes of a problem: how one is declared, and those that need more than a line of problem.py."""
