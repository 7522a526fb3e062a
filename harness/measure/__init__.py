"""What one call is measured by: time, bytes, correctness, conditions. Imports no parent code."""
