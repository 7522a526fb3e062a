"""Textbook claims about the cost of attention, and whether they hold in the runs at hand.

ledger.py has them all, answers.py measures, claim.py judges.
"""
