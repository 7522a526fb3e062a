"""This machine: its processors, driver, limits and counters, and what else changes numbers."""
