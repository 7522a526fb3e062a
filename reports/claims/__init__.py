"""Textbook claims about attention, each with its verdict from the rows of a run.

The claims of a file of this folder are its Statements (statement.py): the words of the claim, and
the test that gives the evidence.
"""
