"""Reading runs: files into checked rows, rows into one frame, and comparable groups."""
