"""Bytes: what a call needs at its highest point, what it will need, and what the budget leaves for
it.
"""
