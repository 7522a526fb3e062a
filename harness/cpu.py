"""The processor's name, as the system knows it. Imports nothing of ours."""

import platform
from contextlib import suppress
from pathlib import Path


def cpu_name() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or None
