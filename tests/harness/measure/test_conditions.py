"""What else the machine did during a block is read, kept, and judged by fixed limits."""

import json
import mmap
import resource
import sys

import pytest

from attnbench.harness.measure import conditions
from attnbench.harness.measure.conditions import HostConditions, contended, throttled
from tests.conftest import environment, ran
from tests.fakes.nvml.driver import H100, UUID

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
        # throttled: by quota, power or heat, and not by idling
        (throttled, {}, None),
        (throttled, {"throttled_s": 0.0}, False),
        (throttled, {"throttled_s": 0.001}, True),
        (throttled, {"clock_event_reasons": 0x1 | 0x2 | 0x10}, False),
        (throttled, {"clock_event_reasons": 0x4}, True),
        (throttled, {"clock_event_reasons": 0x1 | 0x40}, True),
        (throttled, {"wall_s": 1.0, "clock_event_reasons": 0, "power_throttled_s": 0.009}, False),
        (throttled, {"wall_s": 1.0, "clock_event_reasons": 0, "power_throttled_s": 0.011}, True),
        (throttled, {"wall_s": 1.0, "power_throttled_s": 0, "thermal_throttled_s": 0.2}, True),
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
from attnbench.harness.machine.nvml import Device

found = DeviceConditions(Device(uuid={uuid!r}))
found.before()
print(json.dumps(found.after()))
"""
    extra = driver.environment if driver else {}
    done = ran([sys.executable, "-c", program], env=environment(extra), check=True)
    return json.loads(done.stdout)


def test_a_gpus_clock_temperature_and_reasons_stand_beside_the_hosts(fake_nvml):
    fake_nvml.write(H100 + "sm_clock_mhz 1755\ntemperature_c 41\nevent_reasons 0x4\n")
    readings = device_conditions(fake_nvml)
    names = ("sm_clock_mhz", "temperature_c", "clock_event_reasons")
    assert [readings[name] for name in names] == [1755, 41, 4]
    assert readings["wall_s"] > 0
    assert throttled(readings)


@pytest.mark.long
def test_clocks_that_were_held_down_during_a_block_only_show_in_the_drivers_counters(fake_nvml):
    fake_nvml.write(H100 + "event_reasons 0x0\npower_throttle_share 0.5\n")
    readings = device_conditions(fake_nvml)
    assert 0 < readings["power_throttled_s"] <= readings["wall_s"]
    assert "thermal_throttled_s" not in readings, "this driver does not count it"
    assert throttled(readings)


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
from attnbench.harness.machine.nvml import nvml_device, open_gpu

torch.cuda.get_device_properties = lambda _: SimpleNamespace(uuid={UUID.removeprefix("GPU-")!r})
device = nvml_device(torch.device("cuda", 0))
print(json.dumps([device.uuid, open_gpu(device).reason]))
"""
    extra = {**fake_nvml.environment, "CUDA_VISIBLE_DEVICES": chosen}
    done = ran([sys.executable, "-c", program], env=environment(extra), check=True)
    uuid, reason = json.loads(done.stdout)
    assert (uuid, reason.partition(",")[0]) == tuple(found)
    if not chosen:
        assert not {"sm_clock_mhz", "power_throttled_s"} & device_conditions(fake_nvml).keys()
