"""The host as its kernel describes it: from files in a folder, and from /proc."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from attnbench.harness.devices.host import (
    MemoryLimit,
    QuotaLimit,
    cpu_cache_bytes,
    host_oom_kills,
    memory_limit,
    quota,
    waited_s,
)


def cache(root, core, index, level, kind, size, cores):
    """A cache as the kernel describes it."""
    folder = root / f"cpu{core}/cache/index{index}"
    folder.mkdir(parents=True)
    facts = {"level": level, "type": kind, "size": size, "shared_cpu_list": cores}
    for name, value in facts.items():
        (folder / name).write_text(f"{value}\n")


def test_the_last_caches_of_these_cores_are_counted_once(tmp_path):
    for core in range(4):
        cache(tmp_path, core, 0, 1, "Data", "32K", core)
        cache(tmp_path, core, 1, 4, "Instruction", "99K", core)
        cache(tmp_path, core, 2, 3, "Unified", "32768K", "0-1" if core < 2 else "2-3")
    assert cpu_cache_bytes([0, 1], tmp_path) == 32 << 20
    assert cpu_cache_bytes([0, 3], tmp_path) == 64 << 20
    assert cpu_cache_bytes([0, 4], tmp_path) is None
    assert cpu_cache_bytes([], tmp_path) is None


def test_a_cache_that_the_kernel_describes_oddly_is_unknown(tmp_path):
    cache(tmp_path, 0, 0, "three", "Unified", "32M", "0")
    assert cpu_cache_bytes([0], tmp_path) is None


@pytest.mark.long
def test_a_process_that_shares_its_core_is_known_to_have_waited_for_it():
    core = min(os.sched_getaffinity(0))
    busy = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: 0"
    two = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2)]
    deadline = time.monotonic() + 120
    try:
        while not any((waited_s([Path(f"/proc/{one.pid}")]) or 0.0) > 0.1 for one in two):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        for one in two:
            one.kill()
            one.wait()


# ---- control groups ------------------------------------------------------------------------------

GIB = 1 << 30


def lay(root: Path, own: str, files: Mapping[str, object]) -> Path:
    """`own`: /proc/self/cgroup. `files`: their contents by their paths in /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    for name, content in files.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    return root


def v2(folder: str, limit: object, used: int, cached: int = 0) -> dict[str, object]:
    stat = f"anon 1\ninactive_file {cached}\nactive_file 7"
    return {
        f"{folder}memory.max": limit,
        f"{folder}memory.current": used,
        f"{folder}memory.stat": stat,
    }


def test_the_least_that_is_left_counts_up_the_tree_and_above_high_nothing_is(
    tmp_path: Path,
) -> None:
    files = {
        **v2("", "max", 9 * GIB),
        **v2("user/", 8 * GIB, 7 * GIB),
        **v2("user/job/", 4 * GIB, GIB),
        "user/job/memory.high": 3 * GIB,
    }
    root = lay(tmp_path, "1:name=systemd:/x\n0::/user/job\n", files)
    top = root / "sys/fs/cgroup"
    assert memory_limit(root) == MemoryLimit(8 * GIB, GIB, top / "user/memory.max")
    (top / "user/job/memory.current").write_text(str(5 * GIB // 2))
    high = MemoryLimit(3 * GIB, GIB // 2, top / "user/job/memory.high")
    assert memory_limit(root) == high
    (top / "user/job/memory.current").write_text(str(5 * GIB))
    found = memory_limit(root)
    assert found.free_bytes == 0


@pytest.mark.parametrize(
    ("own", "folder"),
    [
        ("/docker/ab", "docker/ab/"),
        ("/docker/ab", ""),  # no namespace: only its own group is mounted
        ("/", ""),
        ("/../../gone", ""),  # seen from another namespace
        ("/docker/ab/not_here", "docker/ab/"),
    ],
)
def test_the_group_is_found_where_it_is_mounted(tmp_path: Path, own: str, folder: str) -> None:
    root = lay(tmp_path, f"4:cpuset:/\n0::{own}\n", v2(folder, 2 * GIB, GIB, GIB // 2))
    file = root / "sys/fs/cgroup" / folder / "memory.max"
    assert memory_limit(root) == MemoryLimit(2 * GIB, 3 * GIB // 2, file)


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/\n", v2("", "max", GIB)),
        ("0::/\n", {"memory.max": "garbage", "memory.current": "\ufffd"}),
        ("0::/\n", {"memory.max": GIB}),
        ("garbage\n::\n", v2("", GIB, 0)),
        ("", v2("", GIB, 0)),
    ],
)
def test_no_limit_and_what_cannot_be_read_are_none(
    tmp_path: Path, own: str, files: dict[str, object]
) -> None:
    root = lay(tmp_path, own, files)
    assert memory_limit(root) is None
    assert memory_limit(tmp_path / "nothing") is None
    assert quota(tmp_path / "nothing") is None
    assert host_oom_kills(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"ours/cpu.max": "150000 100000"}, 1.5),
        ({"ours/cpu.max": "150000 100000", "cpu.max": "100000 100000"}, 1.0),
        ({"ours/cpu.max": "max 100000"}, None),
        ({"ours/cpu.max": "100 0"}, None),
        ({"ours/cpu.max": "garbage"}, None),
        ({"ours/nothing": ""}, None),
    ],
)
def test_the_cpu_quota_is_the_lowest_of_our_groups(
    tmp_path: Path, files: dict[str, object], cores: float | None
) -> None:
    found = quota(lay(tmp_path, "0::/ours\n", files))
    assert (found and found.cores) == cores
    assert found is None or isinstance(found, QuotaLimit)


def test_kills_for_lack_of_memory_are_counted_in_our_own_group(tmp_path: Path) -> None:
    files: dict[str, object] = {
        "memory.events": "oom 9\noom_kill 9",
        "ours/memory.events": "low 0\noom 2\noom_kill 1",
    }
    assert host_oom_kills(lay(tmp_path, "0::/ours\n", files)) == 1


def test_limits_of_version_1_count_too(tmp_path: Path) -> None:
    memory, cpu = "memory/job/memory", "cpu/job/cpu"
    files = {
        f"{memory}.limit_in_bytes": 2 * GIB,
        f"{memory}.usage_in_bytes": GIB,
        f"{memory}.stat": f"inactive_file 3\ntotal_inactive_file {GIB // 2}",
        f"{memory}.oom_control": "oom_kill_disable 0\noom_kill 4",
        "memory/memory.limit_in_bytes": 9223372036854771712,  # none
        "memory/memory.usage_in_bytes": 9 * GIB,
        f"{cpu}.cfs_quota_us": 150000,
        f"{cpu}.cfs_period_us": 100000,
        "cpu/cpu.cfs_quota_us": -1,
        "cpu/cpu.cfs_period_us": 100000,
    }
    root = lay(tmp_path, "8:cpu,cpuacct:/job\n4:memory:/job\n0::/\n", files)
    top = root / "sys/fs/cgroup"
    limit = MemoryLimit(2 * GIB, 3 * GIB // 2, top / f"{memory}.limit_in_bytes")
    assert memory_limit(root) == limit
    assert quota(root) == QuotaLimit(1.5, top / f"{cpu}.cfs_quota_us")
    assert host_oom_kills(root) == 4
