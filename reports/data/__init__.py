"""Reading runs: files into checked rows, rows with computed columns, and comparable groups."""
