"""What instructions this processor has, as Linux says."""

from functools import cache
from pathlib import Path


@cache
def cpu_flags() -> frozenset[str]:
    """Of the first processor, which the others equal; empty if unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    found = (line for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(found, "").partition(":")[2].split())
