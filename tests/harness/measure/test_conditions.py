"""What else the machine did during a block is read, kept, and judged by fixed limits."""

import json
import mmap
import resource
import sys

import pytest
import torch

from attnbench.harness.devices.nvml import Device
from attnbench.harness.measure import conditions
from attnbench.harness.measure.conditions import (
    DeviceConditions,
    HostConditions,
    add_floor,
    contended,
    launch_flags,
    throttled,
)
from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID
from tests.impls._triton.conftest import needs_triton

PAGES = 4096
INSTANCE = "MIG-aaaaaaaa-2222-3333-4444-555555555555"


def watched(work):
    """The readings of a block that does `work`."""
    host = HostConditions()
    host.before()
    work()
    return host.after()


def test_page_faults_of_fresh_pages_are_counted_and_those_of_a_block_before_are_not():
    with mmap.mmap(-1, PAGES * resource.getpagesize()) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)

        def touch():
            for page in range(PAGES):
                memory[page * resource.getpagesize()] = 1

        first, again = watched(touch), watched(touch)
    assert PAGES <= first["minor_faults"] < PAGES + 500
    assert again["minor_faults"] < 500


def test_a_block_that_computes_has_processor_time():
    readings = watched(lambda: sum(range(2_000_000)))
    assert readings["wall_s"] > 0
    assert readings["user_s"] + readings["system_s"] > 0
    assert readings["major_faults"] >= 0
    assert readings["involuntary_switches"] >= 0


def test_a_source_that_cannot_be_read_is_absent(monkeypatch):
    for source in ("waited_s", "steal_s", "throttled_s"):
        monkeypatch.setattr(conditions, source, lambda *_: None)
    names = {"wall_s", "user_s", "system_s", "minor_faults", "major_faults", "involuntary_switches"}
    assert set(watched(lambda: None)) == names


def test_quota_time_is_read_from_either_version_of_control_groups(tmp_path, monkeypatch):
    new, old = tmp_path / "cpu.stat", tmp_path / "v1"
    monkeypatch.setattr(
        conditions,
        "CPU_STAT",
        ((str(new), "throttled_usec", 1e6), (str(old), "throttled_time", 1e9)),
    )
    assert conditions.throttled_s() is None
    old.write_text("nr_periods 3\nthrottled_time 1500000000\n")
    assert conditions.throttled_s() == 1.5
    new.write_text("usage_usec 7\nthrottled_usec 250000\n")
    assert conditions.throttled_s() == 0.25


@pytest.mark.parametrize(
    ("judge", "readings", "verdict"),
    [
        # contended: more than 5 % of the time was lost
        (contended, {"wall_s": 1.0, "waited_s": 0.04}, False),
        (contended, {"wall_s": 1.0, "waited_s": 0.06}, True),
        (contended, {"wall_s": 1.0, "steal_s": 0.06}, True),
        (contended, {"wall_s": 1.0, "waited_s": 0.03, "steal_s": 0.03}, True),
        (contended, {"wall_s": 1.0}, None),
        (contended, {}, None),
        # throttled: by quota, heat or a low clock, and not by idling or a power limit
        (throttled, {}, None),
        (throttled, {"throttled_s": 0.0}, False),
        (throttled, {"throttled_s": 0.001}, True),
        (throttled, {"clock_event_reasons": 0x1 | 0x2 | 0x10}, False),
        (throttled, {"clock_event_reasons": 0x4, "sm_clock_ratio": 0.98}, False),
        (throttled, {"clock_event_reasons": 0x1 | 0x40}, True),
        (throttled, {"sm_clock_ratio": 0.76}, False),
        (throttled, {"sm_clock_ratio": 0.74}, True),
    ],
)
def test_a_block_is_judged_by_fixed_limits(judge, readings, verdict):
    assert judge(readings) is verdict


def device_conditions(driver, uuid="GPU-11111111-2222-3333-4444-555555555555"):
    """One block's readings on a GPU that a scripted driver answers for: in a process of its own,
    which loads that driver at its start.
    """
    program = f"""
import json
from attnbench.harness.measure.conditions import DeviceConditions
from attnbench.harness.devices.nvml import Device

found = DeviceConditions(Device(uuid={uuid!r}))
found.before()
found.during(lambda last: None)(last=True)
print(json.dumps(found.after()))
"""
    extra = driver.environment if driver else {}
    done = ran([sys.executable, "-c", program], env=environment(extra), check=True)
    return json.loads(done.stdout)


def test_a_gpus_clock_temperature_and_reasons_stand_beside_the_hosts(fake_nvml):
    fake_nvml.write(H100 + "sm_clock_mhz 1755\ntemperature_c 41\nevent_reasons 0x4\n")
    readings = device_conditions(fake_nvml)
    names = ("sm_clock_mhz", "sm_clock_ratio", "temperature_c", "clock_event_reasons")
    assert [readings[name] for name in names] == [1755, 1.0, 41, 4]
    assert readings["wall_s"] > 0
    assert not throttled(readings)


class Stamps:
    """Two multiprocessors, of which one had a program each time; between stamps pass 2 ms."""

    def __init__(self, *clocks_mhz):
        steps = [step for clock in clocks_mhz for step in ((0, 0), (2e3 * clock, 2e6))]
        self.found = [torch.tensor([[5, 0], [7, 0]])]
        for cycles, time_ns in steps[1:]:
            step = torch.tensor([[cycles, 0], [time_ns, 0]]).long()
            self.found.append(self.found[-1] + step)

    def take(self):
        return self.found.pop(0)


def test_a_block_has_the_mean_clock_by_the_multiprocessors_own_counters():
    found = DeviceConditions(Device(), Stamps(1980, 1800, 1200))
    readings = []
    for _ in range(3):
        found.before()
        readings.append(found.after())
    assert [one["sm_clock_mhz"] for one in readings] == [1980, 1800, 1200]
    assert [round(one["sm_clock_ratio"], 3) for one in readings] == [1, 0.952, 0.667]
    assert [throttled(one) for one in readings] == [False, False, True]


@needs_triton
@pytest.mark.long
def test_triton_compiles_the_kernel_that_reads_the_counters():
    program = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from attnbench.harness.measure.sm_stamps import stamp_kernel

source = ASTSource(stamp_kernel, {"cycles": "*i64", "times_ns": "*i64"}, {}, {})
print(triton.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 1}).asm["ptx"])
"""
    done = ran([sys.executable, "-c", program], env=environment({}), check=True)
    assert all(f"%{name};" in done.stdout for name in ("smid", "clock64", "globaltimer"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "found"),
    [("", [UUID, "MIG splits this GPU"]), (INSTANCE, [INSTANCE, ""])],
)
def test_a_part_of_a_gpu_that_torch_calls_by_the_whole_ones_name_gets_none_of_its_counters(
    fake_nvml, chosen, found
):
    fake_nvml.write(
        f"{H100}mig 1\nmig_device {INSTANCE} gpu_instance 3 memory_total_mib 9 memory_used_mib 1\n"
    )
    program = f"""
import json
from types import SimpleNamespace
import torch
from attnbench.harness.devices.nvml import nvml_device, open_gpu

torch.cuda.get_device_properties = lambda _: SimpleNamespace(uuid={UUID.removeprefix("GPU-")!r})
device = nvml_device(torch.device("cuda", 0))
print(json.dumps([device.uuid, open_gpu(device).reason]))
"""
    extra = {**fake_nvml.environment, "CUDA_VISIBLE_DEVICES": chosen}
    done = ran([sys.executable, "-c", program], env=environment(extra), check=True)
    uuid, reason = json.loads(done.stdout)
    assert (uuid, reason.partition(",")[0]) == tuple(found)
    if not chosen:
        assert not {"sm_clock_mhz", "temperature_c"} & device_conditions(fake_nvml).keys()


def row(block=1.0, wall=1.1, launch=0.05, **more):
    return {
        "block_ms": [[[block, block]]],
        "wall_block_ms": [[[wall, wall]]],
        "launch_ms": launch,
        "graph_reason": "",
        "conditions": [[{"late_calls": 0}, {"late_calls": 0}]],
        **more,
    }


@pytest.mark.parametrize(
    ("block", "wall", "launch", "flagged"),
    [
        (0.002, 5.0, 0.05, True),  # work on a side stream: the events enclose nothing
        (0.1, 5.0, 4.98, False),  # a hundred small kernels: launching is the time
        (4.0, 5.0, 0.05, False),  # the events saw it
        (0.01, 0.15, 0.02, False),  # a tiny call: waiting for the device costs as much
        (1.0, 2.0, 0.05, True),
    ],
)
def test_the_wall_clock_beyond_launch_and_events_is_unseen_work(block, wall, launch, flagged):
    assert launch_flags(row(block, wall, launch))["unseen_work"] is flagged


def test_late_calls_are_summed_over_processes_and_blocks():
    conditions = [[{"late_calls": 1}, {}], [{"late_calls": 4}]]
    assert launch_flags(row(conditions=conditions))["late_calls"] == 5


def test_a_capture_that_failed_is_told_from_one_that_was_not_wanted():
    failed = "cannot be captured: operation not permitted"
    assert launch_flags(row(graph_reason=failed))["graph_failed"] is True
    long = "a call of more than 10 ms is not bound by its launches"
    assert launch_flags(row(graph_reason=long))["graph_failed"] is False


def test_of_several_warm_ups_the_lowest_floor_is_kept_and_null_is_not_zero():
    fields = {}
    for event in (
        {"launch_ms": None, "shortest_call_ms": 0.4},
        {"launch_ms": 3.0, "shortest_call_ms": 0.3},
        {"launch_ms": 2.0, "shortest_call_ms": 0.5},
        {},
    ):
        add_floor(fields, event)
    assert fields == {"launch_ms": 2.0, "shortest_call_ms": 0.3}
    unknown = {}
    add_floor(unknown, {})
    assert unknown == {"launch_ms": None, "shortest_call_ms": None}
