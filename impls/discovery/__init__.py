"""Which backends exist: shipped files, private folders, functions and entry points."""
