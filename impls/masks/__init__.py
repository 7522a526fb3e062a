"""Masks as rules on token positions, as counts of unmasked pairs, and as tensors."""
