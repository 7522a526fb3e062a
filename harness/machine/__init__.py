"""This machine: its processor, its driver, its limits, and what else changes numbers."""
