"""What this device can reach and whether its counters read what they should: `attnbench doctor
--calibrate`.
"""
