"""The processor: its name, its caches, and who waits for it. Imports nothing of ours."""

import platform
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def cpu_name() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or None


def cpu_cache_bytes(cores: Iterable[int], root: Path = CPUS) -> int | None:
    """Of the last-level caches of these cores, each counted once, as the kernel knows them.

    What fits in them need not come from memory. None if one core's caches are not known.
    """
    found: dict[tuple[int, str], int] = {}
    for core in cores:
        folders = (root / f"cpu{core}/cache").glob("index*")
        caches = [one for one in map(_data_cache, folders) if one is not None]
        if not caches:
            return None
        level, shared_by, size_bytes = max(caches)
        found[level, shared_by] = size_bytes
    return sum(found.values()) or None


def waited_s(threads: Iterable[Path]) -> float | None:
    """Seconds for which threads, folders in /proc, were ready so far and did not run.

    One that has ended does not count. None if the kernel says it of none: the second number of
    schedstat, in ns.
    """
    known_ns = []
    for thread in threads:
        with suppress(OSError, ValueError, IndexError):
            known_ns.append(int((thread / "schedstat").read_bytes().split()[1]))
    return sum(known_ns) / 1e9 if known_ns else None


def _data_cache(folder: Path) -> tuple[int, str, int] | None:
    """Its level, the cores that share it, and its bytes; None if it holds instructions only."""
    with suppress(OSError, ValueError):
        kind, level, cores, size = (
            (folder / name).read_text().strip()
            for name in ("type", "level", "shared_cpu_list", "size")
        )
        if kind != "Instruction" and size.endswith("K"):
            return int(level), cores, int(size[:-1]) << 10
    return None
