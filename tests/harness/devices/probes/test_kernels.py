import pytest
import torch

from attnbench.harness.devices.nvml import Device
from attnbench.harness.devices.probes import kernels


def event(name, us, cat="kernel", **arguments):
    return {"ph": "X", "cat": cat, "name": name, "dur": us, "args": arguments}


LAUNCH = {
    "grid": [128, 1, 1],
    "block": [256, 1, 1],
    "registers per thread": 168,
    "shared memory": 49152,
    "est. achieved occupancy %": 25,
}


def test_kernels_are_summed_by_name_and_launch_shape():
    events = [
        event("gemm", 300, **LAUNCH),
        event("gemm", 320, **LAUNCH),
        event("gemm", 10, **LAUNCH | {"grid": [1, 1, 1]}),
    ]
    noise = [event("aten::mm", 900, cat="cpu_op"), {"ph": "M", "name": "process_name"}]
    large, small = kernels.kernels([*events, *noise])
    assert large == {
        "name": "gemm",
        "launch_count": 2,
        "time_ms": pytest.approx(0.62),
        "grid": [128, 1, 1],
        "block": [256, 1, 1],
        "thread_register_count": 168,
        "block_shared_bytes": 49152,
        "occupancy_ratio": 0.25,
    }
    assert (small["grid"], small["launch_count"]) == ([1, 1, 1], 1)


def test_a_long_table_ends_in_the_sum_of_the_rest():
    table = kernels.shortened([kernels.entry(f"k{i}", 1, float(i)) for i in range(100)])
    assert len(table) == kernels.MOST_ENTRIES
    assert [one["name"] for one in table[:2]] == ["k99", "k98"]
    assert (table[-1]["name"], table[-1]["launch_count"]) == (kernels.REST, 61)
    assert sum(one["time_ms"] for one in table) == sum(range(100))


def test_on_a_cpu_the_entries_are_torchs_operators():
    x = torch.randn(64, 64)
    watch = kernels.watch(Device())
    with watch:
        for _ in range(kernels.CALLS):
            torch.softmax(x @ x, -1)
    table = {one["name"]: one for one in watch.readings().values["kernel_table"]}
    for name in ("aten::_softmax", "aten::mm"):
        assert table[name]["launch_count"] == kernels.CALLS
    assert table["aten::mm"]["time_ms"] > 0


def test_no_kernel_is_a_reason_and_not_an_empty_table():
    watch = kernels.watch(Device())
    with watch:
        pass
    assert watch.readings().values["kernel_table"] is None
    assert watch.readings().reasons == {"kernel_table": "the profiler saw no kernel"}
