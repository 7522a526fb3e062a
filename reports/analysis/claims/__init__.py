"""Textbook claims about attention, each with its verdict from the rows."""
