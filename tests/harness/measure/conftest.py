"""Tests here count bytes of this very process."""

import gc

import pytest
import torch

from attnbench.harness.measure.peak_memory import allocations_followed, release


@pytest.fixture(autouse=True)
def nothing_left_by_other_tests() -> None:
    """Garbage that is collected inside a measured call would be subtracted from its bytes."""
    gc.collect()
    release(torch.device("cpu"))
    with allocations_followed():  # as in a worker, its own memory is there before any is counted
        pass
