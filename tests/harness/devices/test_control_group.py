"""Limits of control groups: from files in a folder."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from attnbench.harness.devices.host import (
    MemoryLimit,
    QuotaLimit,
    host_oom_kills,
    memory_limit,
    quota,
)

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
