"""Models: which attention each of their layers computes, read from their configuration files."""
