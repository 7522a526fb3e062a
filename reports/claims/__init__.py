"""Textbook claims about attention: quantities of a run, and the range of each that holds.

ledger.py has them all, of_rows.py and of_studies.py measure, claim.py judges.
"""
