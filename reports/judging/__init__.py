"""The one judge of two cases: its interval, its margin and its four marks, for whoever compares.

ratio.py is what is known of a pair; pair.py judges it at 95 %, many.py many at once (Holm); over.py pairs.
"""
