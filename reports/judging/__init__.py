"""The one judge of two cases: its interval, its margin and its four marks, for whoever compares.

over.py pairs cases and judges many at once (Holm), pair.py judges a pair at 95 %, ratio.py is the
result, with what samples do not show.
"""
