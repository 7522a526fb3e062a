"""Readings of NVML; tests/harness/devices/probes and doctor query it through a scripted driver."""

from attnbench.harness.devices.nvml import NO_GPU, Device, Reading, open_gpu


def test_a_reading_is_converted_or_keeps_its_reason():
    assert Reading(250).map(lambda power_mw: power_mw / 1e3) == Reading(0.25)
    assert Reading(None, "refused").map(float) == Reading(None, "refused")


def test_a_device_without_a_uuid_is_not_opened():
    assert open_gpu(Device()) == Reading(None, NO_GPU)
