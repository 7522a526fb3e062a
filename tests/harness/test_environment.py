"""Facts that numbers depend on."""

import os
import subprocess
import sys

import pytest
import torch

from attnbench.harness import environment as facts
from tests.conftest import environment as command_environment


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
        ({"cpu.max": "garbage\n"}, None),
    ],
)
def test_the_cpu_quota_is_read_from_both_kinds_of_control_group(
    tmp_path, monkeypatch, files, cores
):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(facts, "CGROUP", tmp_path)
    assert facts.quota_cores() == cores


def threads_under(quota, **environment):
    """How many threads a fresh process takes under a quota of so many cores."""
    code = (
        "import torch; from attnbench.harness import environment as facts;"
        f"facts.quota_cores = lambda: {quota}; facts.fix_threads(); print(torch.get_num_threads())"
    )
    clean = {key: value for key, value in command_environment().items() if key != "OMP_NUM_THREADS"}
    env = {**clean, **environment}
    return int(
        subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        ).stdout
    )


def test_threads_keep_to_the_quota_and_to_what_the_user_says():
    cores = len(os.sched_getaffinity(0))
    assert threads_under(0.5) == 1
    assert threads_under(1.5) == min(2, cores)
    assert threads_under(10_000) == cores
    assert threads_under(10_000, OMP_NUM_THREADS="1") == 1


def test_threads_and_affinity_are_recorded():
    found = facts.collect(torch.device("cpu"))
    assert found["threads"] == torch.get_num_threads()
    assert found["affinity"] == sorted(os.sched_getaffinity(0))
