"""What the control groups of this process limit: memory and processor time, cgroup v1 and v2.

A limit may stand at this process's own group or at any group above it, and in a container the
groups above may not be visible; all that are visible count. `root` is for tests: the folder in
which proc and sys lie. Imports nothing of ours.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/")
UNLIMITED_BYTES = 1 << 60
"""v1 has no word for "no limit": it is the highest multiple of a page below 2**63."""


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
    return min(_memory_limits(root), key=lambda found: found.free_bytes, default=None)


def quota(root: Path = ROOT) -> QuotaLimit | None:
    """The lowest limit of processor time; None if there is none."""
    return min(_quotas(root), default=None)


def host_oom_kills(root: Path = ROOT) -> int | None:
    """How many processes of this group the kernel has killed for lack of memory; None: unknown."""
    for controller, name in (("", "memory.events"), ("memory", "memory.oom_control")):
        for group in _groups(controller, root):
            if "oom_kill" in (counts := _counts(group / name)):
                return counts["oom_kill"]
    return None


# ---- files ---------------------------------------------------------------------------------------


def _memory_limits(root: Path) -> Iterator[MemoryLimit]:
    for group in _groups("", root):
        for name in ("memory.max", "memory.high"):  # above `high` the kernel slows the group down
            yield from _memory_limit(group, name, "memory.current", "inactive_file")
    for number, group in enumerate(_groups("memory", root)):
        if number and _number(group / "memory.use_hierarchy") == 0:
            return  # it does not count what is below it
        for name in ("memory", "memory.memsw"):  # memsw: with swap, so what is swapped counts too
            files = (f"{name}.limit_in_bytes", f"{name}.usage_in_bytes")
            yield from _memory_limit(group, *files, "total_inactive_file")


def _memory_limit(group: Path, limit: str, usage: str, cached: str) -> Iterator[MemoryLimit]:
    """`cached`: page cache in memory.stat that the kernel gives back at once."""
    limit_bytes, used_bytes = _number(group / limit), _number(group / usage)
    if limit_bytes is None or used_bytes is None or limit_bytes >= UNLIMITED_BYTES:
        return
    used_bytes -= _counts(group / "memory.stat").get(cached, 0)
    yield MemoryLimit(limit_bytes, max(0, limit_bytes - used_bytes), group / limit)


def _quotas(root: Path) -> Iterator[QuotaLimit]:
    for group in _groups("", root):
        with suppress(OSError, ValueError, ZeroDivisionError):
            allowed, period = (group / "cpu.max").read_text().split()
            if allowed != "max":
                yield QuotaLimit(int(allowed) / int(period), group / "cpu.max")
    for group in _groups("cpu", root):
        allowed_us = _number(group / "cpu.cfs_quota_us")
        period_us = _number(group / "cpu.cfs_period_us")
        if allowed_us and period_us and allowed_us > 0:
            yield QuotaLimit(allowed_us / period_us, group / "cpu.cfs_quota_us")


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


# ---- groups --------------------------------------------------------------------------------------


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """The folders of our group and of those above it, as far as they are mounted here.

    `controller`: of v1; "" for v2.
    """
    path = _own_path(controller, root)
    if path is None:
        return
    for mounted, point in _mounts(controller, root):
        # Without a namespace of its own, a container has its group mounted, not the whole tree.
        inside = path.relative_to(mounted) if path.is_relative_to(mounted) else Path()
        top = root / point.relative_to("/")
        group = top if ".." in inside.parts else top / inside
        while not group.is_dir() and group != top:
            group = group.parent
        yield group
        while group != top:
            group = group.parent
            yield group


def _own_path(controller: str, root: Path) -> Path | None:
    """From /proc/self/cgroup: lines `number:controllers:path` (cgroups(7))."""
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text(errors="surrogateescape").splitlines():
            number, names, path = line.split(":", 2)
            if controller in names.split(",") if controller else (number, names) == ("0", ""):
                return Path(path)
    return None


def _mounts(controller: str, root: Path) -> Iterator[tuple[Path, Path]]:
    """Which group is mounted where, from /proc/self/mountinfo (proc(5))."""
    with suppress(OSError, ValueError, IndexError):
        text = (root / "proc/self/mountinfo").read_text(errors="surrogateescape")
        for line in text.splitlines():
            fields, _, rest = line.partition(" - ")
            kind, _, options = rest.split(" ", 2)
            ours = kind == "cgroup" and controller in options.split(",")
            if ours if controller else kind == "cgroup2":
                mounted, point = fields.split(" ")[3:5]
                yield Path(mounted), Path(point)
