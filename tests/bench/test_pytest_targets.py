"""What the pytest plugin costs, against its targets. `make bench` runs these."""

import re
import sys
import time
from pathlib import Path
from statistics import median

from tests.conftest import command_line, ran
from tests.harness.pytest_plugin.child_pytest import (
    PLUGIN,
    child,
    child_environment,
    collected,
    command,
    scenario,
)

MOST_LOAD_MS, MOST_COLLECT_S, MOST_RATIO = 20.0, 2.0, 1.05
LARGE = """\
name: large
question: How many?
device: cpu
backends: [naive, fused]
grid: {batch: [1, 2, 3, 4, 5], d_model: 64, heads: [1, 2], seq_len: LENGTHS}
"""
SAME = """\
name: same
question: How long?
device: cpu
backends: [naive, fused, sdpa]
grid: {seq_len: [256, 512, 1k, 2k], d_model: 512, heads: [1, 8]}
plan: quick
"""


def test_the_plugin_loads_in_20_ms():
    code = (
        f"import pytest, time; start = time.perf_counter(); import {PLUGIN};"
        " print((time.perf_counter() - start) * 1e3)"
    )
    command = [sys.executable, "-c", code]
    times_ms = [float(ran(command, env=child_environment(), check=True).stdout) for _ in range(7)]
    assert median(times_ms) <= MOST_LOAD_MS


def test_1_000_cases_are_collected_in_2_s(tmp_path):
    scenario(tmp_path, LARGE.replace("LENGTHS", str(list(range(64, 114)))), "large.yaml")
    times_s = []
    for _ in range(4):
        done = child(tmp_path, "large.yaml", "--collect-only", "-q")
        assert len(collected(done)) == 1_000
        times_s.append(float(re.findall(r"1000 tests collected in ([\d.]+)s", done.stdout)[0]))
    assert median(times_s[1:]) <= MOST_COLLECT_S


def test_a_session_takes_at_most_5_percent_longer_than_the_command(tmp_path):
    scenario(tmp_path, SAME, "same.yaml")
    (tmp_path / "pytest.ini").touch()
    pairs_s = []

    def wall_s(words: list[str], folder: Path) -> float:
        start = time.perf_counter()
        ran(words, cwd=folder, env=child_environment(), check=True, timeout=None)
        return time.perf_counter() - start

    for _ in range(3):  # in turns, so that a machine that slows down slows both
        pairs_s.append(
            (
                wall_s(command_line("run", "same.yaml"), tmp_path),
                wall_s(command("same.yaml", "--benchmark-only"), tmp_path),
            )
        )
    print(pairs_s)
    assert median(pytest_s / command_s for command_s, pytest_s in pairs_s) <= MOST_RATIO
