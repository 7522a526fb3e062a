"""This machine: its processors, its driver, its limits, its counters, and what else changes numbers."""
