"""attnbench from Python: what the command line does, by the same code, without its printing.
docs/api.md has examples.
"""
