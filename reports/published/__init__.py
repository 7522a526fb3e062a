"""The pages of what others measured and published."""
