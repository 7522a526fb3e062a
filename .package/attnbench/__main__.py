"""`python -m attnbench`: the command line from a bare checkout, with PYTHONPATH=.package and nothing installed."""

from .harness.cli.app import main

if __name__ == "__main__":
    main()
