"""Two runs, environments or backends compared: ratios, intervals, verdicts and gates."""
