"""Read what tests/gpu_day/record.py has recorded of a GPU, and let the fakes answer it again."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .driver import UUID

MIB = 1 << 20
# A script's key: the recorded answer, and what one of its units is there.
KEYS = {
    "power_w": ("power_w", 1.0),
    "sm_clock_mhz": ("sm_clock_mhz", 1.0),
    "memory_clock_mhz": ("memory_clock_mhz", 1.0),
    "temperature_c": ("temperature_c", 1.0),
    "event_reasons": ("clock_event_mask", 1.0),
    "memory_used_mib": ("device_used_bytes", 1.0 / MIB),
    "busy_percent": ("kernel_busy_ratio", 100.0),
}


def recorded(path: Path, kind: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return [line for line in lines if line["kind"] == kind]


def script(answers: Mapping[str, Any], more: str = "") -> str:
    """Of a driver that gives these answers; `more` has further lines of the GPU."""
    lines = [f"gpu {UUID}", "memory_total_mib 81559", "memory_busy_percent 0", *more.splitlines()]
    for key, (name, unit) in KEYS.items():
        value = answers.get(name)
        lines.append(f"{key} {'unsupported' if value is None else f'{value * unit:.9g}'}")
    return "\n".join(lines) + "\n"


def kept_bytes(lines: Iterable[Mapping[str, Any]], library: str) -> int:
    """What the first use of a library made torch's allocator keep."""
    (line,) = (line for line in lines if line["library"] == library)
    return int(line["after"]["requested_bytes.current"] - line["before"]["requested_bytes.current"])
