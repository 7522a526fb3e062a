"""The disposable process in which backends run: what is asked of it, and the phases of a case."""
