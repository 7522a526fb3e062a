"""A run on the devices of a Ray cluster. Nothing here is imported unless it was asked for."""
