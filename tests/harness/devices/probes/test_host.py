import time

import pytest
import torch

from attnbench.harness.devices.nvml import Device
from attnbench.harness.devices.probes import host


def test_a_busy_process_and_a_waiting_one_differ():
    def window(work):
        watch = host.watch(Device())
        with watch:
            until = time.perf_counter() + 0.2
            while time.perf_counter() < until:
                work()
        return watch.readings().values

    idle, busy = window(lambda: time.sleep(0.02)), window(lambda: sum(range(100)))
    assert idle["host_busy_cores"] < 0.3 * busy["host_busy_cores"]
    assert busy["host_cpu_ratio"] == pytest.approx(
        busy["host_busy_cores"] / torch.get_num_threads()
    )
    assert busy["host_resident_bytes"] > 10 << 20
