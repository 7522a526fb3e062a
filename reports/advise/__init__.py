"""From measured rows to advice: which attention, how long a context, what it costs, on a device."""
