"""What is planned: a case, its axes, and its FLOPs and bytes."""
