"""The wall: the longest N that fits into the memory budget, predicted from a formula, then looked for in processes of its own.

plan.py says what is looked for, prediction.py where it should be, search.py which N to try next, probe.py tries one inside a worker,
hunt.py asks the workers, record.py is the row.
"""
