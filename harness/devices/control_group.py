"""What the control groups (v2) of this process limit: memory and processor time.

A limit may stand at this process's own group or at any group above it, and in a container the
groups above may not be visible; all that are visible count. `root` is for tests: the folder in
which proc and sys lie. Imports nothing of ours.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")


class MemoryLimit(NamedTuple):
    """`free_bytes`: what is left of it. `file`: where it stands."""

    limit_bytes: int
    free_bytes: int
    file: Path


class QuotaLimit(NamedTuple):
    """Processor time, as so many cores."""

    cores: float
    file: Path


def memory_limit(root: Path = ROOT) -> MemoryLimit | None:
    """The limit with the least memory left; None if there is none."""
    found = []
    for group in _groups(root):
        used_bytes = _number(group / "memory.current")
        for name in ("memory.max", "memory.high"):  # above `high` the kernel slows the group down
            limit_bytes = _number(group / name)
            if used_bytes is not None and limit_bytes is not None:
                # the kernel gives page cache back at once
                cached_bytes = _counts(group / "memory.stat").get("inactive_file", 0)
                free_bytes = max(0, limit_bytes - used_bytes + cached_bytes)
                found.append(MemoryLimit(limit_bytes, free_bytes, group / name))
    return min(found, key=lambda one: one.free_bytes, default=None)


def quota(root: Path = ROOT) -> QuotaLimit | None:
    """The lowest limit of processor time; None if there is none."""
    found = []
    for group in _groups(root):
        with suppress(OSError, ValueError, ZeroDivisionError):  # also "max", for no limit
            allowed, period = map(int, (group / "cpu.max").read_text().split())
            found.append(QuotaLimit(allowed / period, group / "cpu.max"))
    return min(found, default=None)


def host_oom_kills(root: Path = ROOT) -> int | None:
    """How many processes of this group the kernel has killed for lack of memory; None: unknown."""
    known = (_counts(group / "memory.events").get("oom_kill") for group in _groups(root))
    return next((kills for kills in known if kills is not None), None)


def _groups(root: Path) -> Iterator[Path]:
    """The folders of our group and of those above it.

    A container without a namespace of its own has its group mounted in place of the whole tree.
    """
    top = root / "sys/fs/cgroup"
    with suppress(OSError, StopIteration):
        lines = (root / "proc/self/cgroup").read_text(errors="surrogateescape").splitlines()
        path = next(line[4:] for line in lines if line.startswith("0::/"))  # cgroups(7)
        group = top / path if ".." not in path.split("/") else top
        for folder in (group, *group.parents):
            if folder.is_dir() and folder.is_relative_to(top):
                yield folder


def _number(file: Path) -> int | None:
    """None also for "max"."""
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return None


def _counts(file: Path) -> dict[str, int]:
    """Lines `name number`."""
    with suppress(OSError, ValueError):
        lines = (line.split() for line in file.read_text().splitlines())
        return {line[0]: int(line[1]) for line in lines if len(line) == 2}
    return {}
