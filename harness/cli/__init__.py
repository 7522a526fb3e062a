"""The command `attnbench`: its verbs, and the tables that they print. Only here and in the Python
API harness, impls and reports meet.
"""
