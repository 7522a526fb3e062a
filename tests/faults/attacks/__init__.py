"""What attnbench must survive: one file per kind of attack, found by its name."""
