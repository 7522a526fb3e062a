"""harness/devices/probes/kernels.py. Only a GPU makes a trace: the one here was written by hand."""

from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity

from attnbench.harness.devices.nvml import Device
from attnbench.harness.devices.probes import kernels

BY_HAND = Path(__file__).with_name("trace_by_hand.json")
SHAPE = {
    "grid": [32, 64, 1],
    "block": [256, 1, 1],
    "thread_register_count": 109,
    "block_shared_bytes": 66560,
    "waves": pytest.approx(2048 / 132),  # of docs/gpu.md
    "occupancy_ratio": 0.25,
}
NOTHING = dict.fromkeys(SHAPE)


class Profiler:
    """Its trace is the one written by hand."""

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_bytes(BY_HAND.read_bytes())


def test_kernels_are_summed_by_name_and_launch_shape():
    found = kernels.kernels(kernels.trace_events(Profiler()))
    large, small, bare, memset = found
    time_ms = pytest.approx(0.62)
    assert large == {"name": "attention_kernel", "launch_count": 2, "time_ms": time_ms, **SHAPE}
    assert (small["grid"], small["launch_count"]) == ([1, 1, 1], 1)
    assert (small["waves"], small["occupancy_ratio"]) == (None, 0.0), "unknown, and below 0.5 %"
    assert [one["name"] for one in (bare, memset)] == ["without_fields", "Memset (Device)"]
    for one in (bare, memset):
        assert {name: one[name] for name in SHAPE} == NOTHING, "fields are optional"


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


def test_a_gpu_without_cupti_has_no_kernels_and_says_why(monkeypatch):
    monkeypatch.setattr(kernels, "supported_activities", lambda: {ProfilerActivity.CPU})
    watch = kernels.watch(Device(uuid="GPU-0"))
    with watch:
        pass
    values, reasons = watch.readings()
    assert values == dict.fromkeys(kernels.COLUMNS)
    assert reasons == dict.fromkeys(kernels.COLUMNS, kernels.NO_CUPTI)
