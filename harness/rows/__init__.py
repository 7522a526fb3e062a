"""What a row holds, and the reader of a run's files."""
