"""The host as its kernel describes it: processor, control groups, memory, processes, settings.

Imports nothing of ours.
"""

import os
import platform
import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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


# ---- control groups ------------------------------------------------------------------------------

ROOT = Path("/")  # where proc and sys lie, but for tests
UNLIMITED_BYTES = 1 << 60  # v1 has no word for it: the highest multiple of a page below 2**63
MEMORY_FILES = {  # by controller, "" for v2: what is used, its limits, and the page cache in it
    # above `high` the kernel slows the group down
    "": ("memory.current", ("memory.max", "memory.high"), "inactive_file"),
    "memory": ("memory.usage_in_bytes", ("memory.limit_in_bytes",), "total_inactive_file"),
}


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
    """The limit with the least memory left; None if there is none. It may stand at this process's
    own group or at any above it, of which a container sees only some.
    """
    found = []
    for controller, (used, limits, cached) in MEMORY_FILES.items():
        for group in _groups(controller, root):
            used_bytes = _number(group / used)
            for name in limits:
                limit_bytes = _number(group / name)
                if used_bytes is None or limit_bytes is None or limit_bytes >= UNLIMITED_BYTES:
                    continue
                # the kernel gives page cache back at once
                cached_bytes = _counts(group / "memory.stat").get(cached, 0)
                free_bytes = max(0, limit_bytes - used_bytes + cached_bytes)
                found.append(MemoryLimit(limit_bytes, free_bytes, group / name))
    return min(found, key=lambda one: one.free_bytes, default=None)


def quota(root: Path = ROOT) -> QuotaLimit | None:
    """The lowest limit of processor time; None if there is none."""
    found = []
    for group in _groups("", root):
        with suppress(OSError, ValueError, ZeroDivisionError):  # also "max", for no limit
            allowed, period = map(int, (group / "cpu.max").read_text().split())
            found.append(QuotaLimit(allowed / period, group / "cpu.max"))
    for group in _groups("cpu", root):
        allowed_us, period_us = (
            _number(group / f"cpu.cfs_{one}_us") for one in ("quota", "period")
        )
        if allowed_us and period_us and allowed_us > 0:  # -1: no limit
            found.append(QuotaLimit(allowed_us / period_us, group / "cpu.cfs_quota_us"))
    return min(found, default=None)


def host_oom_kills(root: Path = ROOT) -> int | None:
    """How many processes of this group the kernel has killed for lack of memory; None: unknown."""
    files = {"": "memory.events", "memory": "memory.oom_control"}
    known = (
        _counts(group / file).get("oom_kill")
        for controller, file in files.items()
        for group in _groups(controller, root)
    )
    return next((kills for kills in known if kills is not None), None)


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """The folders of our group and of those above it. `controller`: of v1; "" for v2.

    A container without a namespace of its own has its group mounted in place of the whole tree.
    """
    top = root / "sys/fs/cgroup" / controller
    with suppress(OSError, ValueError, StopIteration):
        lines = (root / "proc/self/cgroup").read_text(errors="surrogateescape").splitlines()
        known = (line.split(":", 2) for line in lines)  # number:controllers:path, cgroups(7)
        path = next(path for _, names, path in known if controller in names.split(","))
        group = top if ".." in path.split("/") else top / path.lstrip("/")
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


# ---- memory --------------------------------------------------------------------------------------


def host_total_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def host_available_bytes() -> int:
    """Of the host's free memory what our control groups and `ulimit -v` allow."""
    import psutil

    free = [int(psutil.virtual_memory().available)]
    if group := memory_limit():
        free.append(group.free_bytes)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        free.append(max(0, hard - address_space_bytes()))
    return min(free)


def address_space_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


# ---- processes below one, and the run that a worker works for ------------------------------------

RUN = "ATTNBENCH_RUN"
"""In a worker's environment: the process of the run."""


def run_pid() -> int:
    """The process that this worker works for; in another process its parent."""
    return int(os.environ.get(RUN) or os.getppid() or os.getpid())


def descendants(root: int) -> Iterator[int]:
    """Processes below this one, from parents to children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # The program's name stands in brackets before the state and may hold anything.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    below = [root]
    for pid in below:
        found = children.get(pid, [])
        below += found
        yield from found


# ---- environment variables that change numbers; run.json records these and no others -------------

SETTINGS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
    "NVIDIA_TF32_OVERRIDE",
    "TRITON_INTERPRET",
)

CHOICE = "CUDA_VISIBLE_DEVICES"
"""Which of several GPUs is meant, not how it is used."""
