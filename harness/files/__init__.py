"""Safe files, refusals, and foreign text that is safe to print."""
