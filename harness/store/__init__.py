"""The files of a run, and names of runs."""
