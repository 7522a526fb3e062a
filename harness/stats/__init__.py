"""Statistics on plain numbers, shared by what measures and what reports."""
