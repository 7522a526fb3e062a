"""Whether attnbench can be believed: equal backends compared, and backends that cheat."""
