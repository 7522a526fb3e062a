"""The one judge of two cases: its interval, its margin and its four marks, for whoever compares.

pair.py judges a pair at 95 %; many.py says what holds of many pairs at once (Holm).
"""
