"""Grades of a GPU's facts."""

import pytest

from attnbench.harness.devices.load import Process, Users
from attnbench.harness.devices.nvml import Reading
from attnbench.harness.doctor.facts import as_facts
from attnbench.harness.doctor.rules import CALIBRATION, GPU_RULES, findings
from tests.fakes.nvml.driver import UUID

HEALTHY = {
    "name": "NVIDIA H100",
    "compute_capability": "9.0",
    "memory_total_bytes": 80 << 30,
    "memory_free_bytes": 79 << 30,
    "memory_used_bytes": 1 << 30,
    "sm_clock_mhz": 1980,
    "max_sm_clock_mhz": 1980,
    "memory_clock_mhz": 2619,
    "max_memory_clock_mhz": 2619,
    "clock_event_mask": 1,
    "temperature_c": 31,
    "temperature_limit_c": 87,
    "power_w": 70.0,
    "power_limit_w": 700.0,
    "energy_j": 1.0,
    "ecc_enabled": True,
    "uncorrected_ecc_count": 0,
    "persistence_enabled": True,
    "compute_mode": "default",
    "mig_enabled": False,
    "kernel_busy_ratio": 0.0,
    "sm_active_ratio": 0.0,
    "any_tensor_ratio": 0.0,
    "dram_bandwidth_ratio": 0.0,
}


def facts(**values):
    """An idle, healthy GPU that torch uses, with these values changed."""
    known = {"uuid": UUID, "processes": Users(processes=(), known=True), **HEALTHY, **values}
    readings = {
        name: Reading(value, f"nvmlSome{name}: this GPU does not offer it")
        for name, value in known.items()
    }
    known = {"torch_uses": True, "tier": "gpm", "calibration": None}
    return as_facts(readings) | known


def found(**values):
    return [*findings((*GPU_RULES, *CALIBRATION), facts(**values))]


def finding(about, **values):
    return next(one for one in found(**values) if one.about == about)


def test_a_gpu_in_good_health_has_no_trouble():
    assert {one.grade for one in found()} == {"ok"}


def test_a_run_needs_one_context_at_a_time_so_exclusive_mode_is_no_fault():
    assert finding("compute mode", compute_mode="exclusive process").grade == "ok"


@pytest.mark.parametrize(
    ("what", "grade", "changed", "word"),
    [
        ("throttling", "bad", {"clock_event_mask": 0x4}, "power limit"),
        ("throttling", "bad", {"clock_event_mask": 0x8}, "hardware"),
        ("throttling", "bad", {"clock_event_mask": 0x21}, "too hot"),
        ("throttling", "bad", {"clock_event_mask": 0x80}, "power brake"),
        ("ecc", "bad", {"uncorrected_ecc_count": 3}, "3 uncorrected"),
        ("compute mode", "bad", {"compute_mode": "prohibited"}, "prohibited"),
        ("persistence", "note", {"persistence_enabled": False}, "off"),
        ("temperature", "note", {"temperature_c": 85}, "85"),
        ("mig", "note", {"mig_enabled": True}, "on"),
    ],
)
def test_what_no_run_survives_is_bad_the_rest_a_note_and_both_have_advice(
    what, grade, changed, word
):
    one = finding(what, **changed)
    assert one.grade == grade
    assert word in one.found
    assert one.advice


def process(ours, used_bytes=1 << 20, name="x"):
    found = Process(pid=7, used_bytes=used_bytes, ours=ours, name=name)
    return Users(processes=(found,), known=True)


@pytest.mark.parametrize(
    ("users", "busy", "grade"),
    [
        (Users(processes=(), known=True), 0.0, "ok"),
        (Users(processes=(), known=True), 0.5, "note"),  # it has just ended
        (Users(processes=(), known=False), 0.0, "note"),
        (Users(processes=(), known=False), 0.5, "bad"),  # nothing of ours runs
        (process(ours=False, used_bytes=None, name=None), 0.0, "note"),
        (process(ours=False), 0.5, "bad"),
        (process(ours=True), 0.0, "ok"),
        (None, None, "note"),
    ],
)
def test_other_processes_are_bad_if_they_work_and_never_guessed(users, busy, grade):
    one = finding("other processes", kernel_busy_ratio=busy, sm_active_ratio=busy, processes=users)
    assert one.grade == grade


@pytest.mark.parametrize(("mask", "is_said"), [(0x1, True), (0x3, False)])
def test_clocks_that_are_not_locked_are_named(mask: int, is_said: bool) -> None:
    said = finding("clocks", clock_event_mask=mask).found
    assert ("not known to be locked" in said) is is_said
