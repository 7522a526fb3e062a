"""What is planned: a case, its axes, its FLOPs and bytes, and how long it is expected to take."""
