"""The processor's name and caches, and how long threads waited for it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnbench.harness.devices.host import cpu_cache_bytes, waited_s


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
