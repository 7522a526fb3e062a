"""Limits of control groups, of both versions, wherever they are mounted: from files in a folder."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from attnbench.harness.devices.control_group import (
    MemoryLimit,
    QuotaLimit,
    host_oom_kills,
    memory_limit,
    quota,
)

V2 = "30 1 0:26 {} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = "35 31 0:32 {} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
V1_CPU = "33 31 0:30 {} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct"
NO_LIMIT = 9223372036854771712  # of v1
GIB = 1 << 30


def lay(root: Path, own: str, mounts: str, files: Mapping[str, object]) -> Path:
    """`own`: /proc/self/cgroup. `files`: their contents by their paths in /sys/fs/cgroup."""
    proc = root / "proc/self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(own)
    (proc / "mountinfo").write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n{mounts}\n")
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


def v1(folder: str, limit: int, used: int, cached: int = 0) -> dict[str, object]:
    return {
        f"memory/{folder}memory.limit_in_bytes": limit,
        f"memory/{folder}memory.usage_in_bytes": used,
        f"memory/{folder}memory.stat": f"inactive_file 3\ntotal_inactive_file {cached}",
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
    root = lay(tmp_path, "1:name=systemd:/x\n0::/user/job\n", V2.format("/"), files)
    top = root / "sys/fs/cgroup"
    assert memory_limit(root) == MemoryLimit(8 * GIB, GIB, top / "user/memory.max")
    (top / "user/job/memory.current").write_text(str(5 * GIB // 2))
    high = MemoryLimit(3 * GIB, GIB // 2, top / "user/job/memory.high")
    assert memory_limit(root) == high
    (top / "user/job/memory.current").write_text(str(5 * GIB))
    found = memory_limit(root)
    assert found.free_bytes == 0


@pytest.mark.parametrize(
    ("own", "mounted", "folder"),
    [
        ("/docker/ab", "/", "docker/ab/"),
        ("/docker/ab", "/docker/ab", ""),  # no namespace: only its own group is mounted
        ("/", "/", ""),
        ("/../../gone", "/", ""),  # seen from another namespace
        ("/docker/ab/not_here", "/", "docker/ab/"),
    ],
)
def test_the_group_of_v1_is_found_where_it_is_mounted(
    tmp_path: Path, own: str, mounted: str, folder: str
) -> None:
    text = f"8:cpu:/other\n4:memory:{own}\n0::/\n"
    root = lay(tmp_path, text, V1.format(mounted), v1(folder, 2 * GIB, GIB, GIB // 2))
    file = root / "sys/fs/cgroup/memory" / folder / "memory.limit_in_bytes"
    assert memory_limit(root) == MemoryLimit(2 * GIB, 3 * GIB // 2, file)


@pytest.mark.parametrize(
    ("own", "mounts", "files"),
    [
        ("0::/\n", V2.format("/"), v2("", "max", GIB)),
        ("4:memory:/\n", V1.format("/"), v1("", NO_LIMIT, GIB)),
        ("0::/\n", V2.format("/"), {"memory.max": "garbage", "memory.current": "\ufffd"}),
        ("0::/\n", V2.format("/"), {"memory.max": GIB}),
        ("garbage\n::\n", "garbage - x", v2("", GIB, 0)),
        ("", "", v2("", GIB, 0)),
    ],
)
def test_no_limit_and_what_cannot_be_read_are_none(
    tmp_path: Path, own: str, mounts: str, files: dict[str, object]
) -> None:
    root = lay(tmp_path, own, mounts, files)
    assert memory_limit(root) is None
    assert memory_limit(tmp_path / "nothing") is None
    assert quota(tmp_path / "nothing") is None
    assert host_oom_kills(tmp_path / "nothing") is None


def v1_quota(quota_us: int, group: str = "") -> dict[str, object]:
    folder = f"cpu,cpuacct/{group}cpu.cfs_"
    return {f"{folder}quota_us": quota_us, f"{folder}period_us": 100000}


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"ours/cpu.max": "150000 100000"}, 1.5),
        ({"ours/cpu.max": "150000 100000", "cpu.max": "100000 100000"}, 1.0),
        ({"ours/cpu.max": "max 100000"}, None),
        ({"ours/cpu.max": "100 0"}, None),
        ({"ours/cpu.max": "garbage"}, None),
        (v1_quota(400000, "ours/"), 4.0),
        (v1_quota(-1), None),
        ({"ours/nothing": ""}, None),
    ],
)
def test_the_cpu_quota_is_read_from_both_kinds(
    tmp_path: Path, files: dict[str, object], cores: float | None
) -> None:
    own = "3:cpu,cpuacct:/ours\n0::/ours\n"
    root = lay(tmp_path, own, f"{V1_CPU.format('/')}\n{V2.format('/')}", files)
    found = quota(root)
    assert (found and found.cores) == cores
    assert found is None or isinstance(found, QuotaLimit)


def test_kills_for_lack_of_memory_are_counted_in_our_own_group(tmp_path: Path) -> None:
    mounts = f"{V1.format('/')}\n{V2.format('/')}"
    files: dict[str, object] = {
        "memory.events": "oom 9\noom_kill 9",
        "ours/memory.events": "low 0\noom 2\noom_kill 1",
        "memory/ours/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5",
    }
    own = "4:memory:/ours\n0::/ours\n"
    assert host_oom_kills(lay(tmp_path / "both", own, mounts, files)) == 1
    files.pop("ours/memory.events")
    files.pop("memory.events")
    assert host_oom_kills(lay(tmp_path / "v1", own, mounts, files)) == 5
