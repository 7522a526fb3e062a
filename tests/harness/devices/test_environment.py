"""Facts that numbers depend on."""

import os
import sys

import pytest

from tests.conftest import environment as command_environment
from tests.conftest import ran

pytestmark = pytest.mark.long


def threads_under(quota, **environment):
    """How many threads a fresh process takes under a quota of so many cores."""
    code = (
        "import torch; from attnbench.harness.devices import environment as facts;"
        f"facts.quota_cores = lambda: {quota}; facts.fix_threads(); print(torch.get_num_threads())"
    )
    clean = {key: value for key, value in command_environment().items() if key != "OMP_NUM_THREADS"}
    env = {**clean, **environment}
    return int(ran([sys.executable, "-c", code], env=env, check=True).stdout)


def test_threads_keep_to_the_quota_and_to_what_the_user_says():
    cores = len(os.sched_getaffinity(0))
    assert threads_under(0.5) == 1
    assert threads_under(1.5) == min(2, cores)
    assert threads_under(10_000) == cores
    assert threads_under(10_000, OMP_NUM_THREADS="1") == 1
