"""The one judge of two cases: its interval, its margin and its four marks, for whoever compares.

over.py pairs cases, pair.py judges a pair at 95 %, many.py many at once (Holm); noise.py is what
samples do not show, ratio.py the result.
"""
