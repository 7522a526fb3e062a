"""What others measured and published: their tables, read beside our runs and formulas."""
