"""`python -m attnbench`: the command line from a bare checkout, with PYTHONPATH=.package and nothing installed."""

import sys

# `python -m` puts the current folder first, where a numpy.py of the user's would stand in for numpy.
if not sys.flags.safe_path:
    del sys.path[0]

from .harness.cli.app import main

if __name__ == "__main__":
    main()
