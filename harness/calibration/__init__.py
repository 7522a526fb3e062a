"""`attnbench doctor --calibrate`: peak rates of a device, and whether its counters are right."""
