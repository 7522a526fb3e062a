"""What is good, noteworthy and bad about a GPU, by its facts alone."""

from dataclasses import replace

import pytest

from attnbench.harness.doctor import Finding, Findings
from attnbench.harness.doctor.gpu_facts import GpuFacts
from attnbench.harness.doctor.gpu_findings import findings_of
from attnbench.harness.doctor.processes import Process, Users

UUID = "GPU-11111111-2222-3333-4444-555555555555"


def facts(**values):
    """An idle GPU in good health that torch uses, with these values changed."""
    good = {
        "name": "NVIDIA H100", "compute_capability": "9.0", "memory_total_bytes": 80 << 30, "memory_free_bytes": 79 << 30,
        "memory_used_bytes": 1 << 30, "sm_clock_mhz": 1980, "max_sm_clock_mhz": 1980, "memory_clock_mhz": 2619,
        "max_memory_clock_mhz": 2619,
        "clock_event_mask": 1, "temperature_c": 31, "temperature_limit_c": 87, "power_w": 70.0, "power_limit_w": 700.0, "energy_j": 1.0,
        "ecc_enabled": True, "uncorrected_ecc_count": 0, "persistence_enabled": True, "compute_mode": "default", "mig_enabled": False,
        "kernel_busy_ratio": 0.0, "sm_active_ratio": 0.0, "any_tensor_ratio": 0.0, "dram_bandwidth_ratio": 0.0,
    }  # fmt: skip
    return GpuFacts(
        uuid=UUID, calibration=None, instance_of=None, torch_uses=True, tier="gpm", values=good | values,
        reasons={name: f"nvmlSome{name}: this GPU does not offer it" for name, value in values.items() if value is None},
        users=Users(processes=(), known=True),
    )  # fmt: skip


def finding(about, **values):
    return next(one for one in findings_of(facts(**values)) if one.about == about)


def test_a_gpu_in_good_health_has_no_trouble():
    assert {one.grade for one in findings_of(facts())} == {"ok"}


@pytest.mark.parametrize(
    ("changed", "what", "word"),
    [
        ({"clock_event_mask": 0x4}, "throttling", "power limit"),
        ({"clock_event_mask": 0x8}, "throttling", "hardware"),
        ({"clock_event_mask": 0x21}, "throttling", "too hot"),
        ({"clock_event_mask": 0x80}, "throttling", "power brake"),
        ({"uncorrected_ecc_count": 3}, "ecc", "3 uncorrected"),
        ({"compute_mode": "prohibited"}, "compute mode", "prohibited"),
    ],
)
def test_what_no_run_survives_is_bad_and_has_advice(changed, what, word):
    one = finding(what, **changed)
    assert one.grade == "bad"
    assert word in one.found
    assert one.advice


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"persistence_enabled": False}, "persistence"),
        ({"compute_mode": "exclusive process"}, "compute mode"),
        ({"temperature_c": 85}, "temperature"),
        ({"mig_enabled": True}, "mig"),
    ],
)
def test_what_a_run_can_live_with_is_a_note_with_advice(changed, what):
    one = finding(what, **changed)
    assert one.grade == "note"
    assert one.advice


def test_harmless_clock_events_are_words_only():
    assert finding("throttling", clock_event_mask=0x12) == Finding(
        about="throttling",
        found="a user set application clocks; sync boost with other GPUs",
        gpu="GPU-11111111",
    )


@pytest.mark.parametrize(
    ("users", "busy", "grade"),
    [
        (Users(processes=(), known=True), 0.0, "ok"),
        (Users(processes=(), known=True), 0.5, "note"),  # what has just ended
        (Users(processes=(), known=False), 0.0, "note"),
        (
            Users(processes=(), known=False),
            0.5,
            "bad",
        ),  # nothing of ours runs, so somebody else's does
        (
            Users(processes=(Process(pid=7, used_bytes=None, ours=False, name=None),), known=True),
            0.0,
            "note",
        ),
        (
            Users(
                processes=(Process(pid=7, used_bytes=1 << 20, ours=False, name="x"),), known=True
            ),
            0.5,
            "bad",
        ),
        (
            Users(processes=(Process(pid=7, used_bytes=1 << 20, ours=True, name="x"),), known=True),
            0.0,
            "ok",
        ),
        (None, None, "note"),
    ],
)
def test_others_are_bad_where_they_work_and_never_guessed(users, busy, grade):
    gpu = facts(kernel_busy_ratio=busy, sm_active_ratio=busy)
    gpu = replace(
        gpu,
        users=users,
        reasons=gpu.reasons
        | ({"processes": "nvmlX: this user may not read it"} if users is None else {}),
    )
    assert next(one for one in findings_of(gpu) if one.about == "other processes").grade == grade


def test_the_gpu_that_torch_uses_is_marked():
    found = Findings(
        findings=tuple(findings_of(facts())), environment={}, gpus=(facts().as_dict(),)
    )
    assert [drawn.title for drawn in found.tables()] == [
        None,
        "GPU-11111111, the one that torch uses",
    ]
    assert found.exit_code == 0
