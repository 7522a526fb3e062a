"""The disposable process in which backends run: requests, and the phases of a case."""
