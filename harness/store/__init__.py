"""The files of a run, names of runs, and suites."""
