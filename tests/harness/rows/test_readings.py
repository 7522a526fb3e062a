"""The kind of utilization of a row."""

import pytest

from attnbench.harness.rows.readings import MEANING, tier_of


@pytest.mark.parametrize(
    ("window", "device", "peaks", "tier"),
    [
        ({"sm_active_ratio": 0.0, "kernel_busy_ratio": 1.0}, "cuda", None, "gpm"),
        ({"sm_active_ratio": None, "kernel_busy_ratio": 1.0}, "cuda", {"x": 1.0}, "busy"),
        ({"sm_active_ratio": None, "kernel_busy_ratio": None}, "cuda", {"x": 1.0}, "derived"),
        ({"host_cpu_ratio": 0.5}, "cuda", None, "host"),
        ({"host_cpu_ratio": 0.5}, "cpu", {"x": 1.0}, "host"),
    ],
)
def test_the_best_kind_that_the_windows_have_is_named(window, device, peaks, tier):
    assert tier_of([window], device, peaks) == tier
    assert tier in MEANING
