"""Textbook claims about the cost of attention, and whether they hold in the runs at hand.

ledger.py has them all, claim.py measures and judges.
"""
