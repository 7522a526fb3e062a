"""Attention, a block and a small decoder as torch modules, and generation of text with them."""
