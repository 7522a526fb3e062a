"""Two runs or backends compared: ratios, intervals, verdicts and gates."""
