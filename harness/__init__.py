"""Run attention backends over scenarios and write every sample to files."""
