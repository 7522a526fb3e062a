"""Grades what NVML told of one GPU. Each question is a function from facts to a Finding; a refusal
by the driver is a finding too.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from humanize import naturalsize

from ..measure.conditions import NVML_THROTTLED
from ..measure.utilization_tier import MEANING
from ..nvml import WORDS
from .calibration import calibration
from .finding import Finding
from .gpu_facts import GpuFacts
from .processes import Process

BUSY_SHARE = 0.05
"""Of the time of watching, in which nothing of ours ran: beyond it somebody else works on this GPU.
"""
NEAR_LIMIT_C = 5
EVENTS = {  # nvml.h, nvmlClocksEventReasons
    0x1: "the GPU is idle",
    0x2: "a user set application clocks",
    0x4: "the power limit is reached",
    0x8: "hardware slowdown (heat or power supply)",
    0x10: "sync boost with other GPUs",
    0x20: "too hot, lowered by the driver",
    0x40: "too hot, lowered by the hardware",
    0x80: "power brake by the power supply",
    0x100: "clocks of a display",
}
HOT = 0x8 | 0x20 | 0x40


def findings_of(facts: GpuFacts) -> list[Finding]:
    """All findings on one GPU; a lost one has but one."""
    if facts.lost:
        why = facts.reasons.get("uuid", "the driver answers that it is lost")
        advice = "restart the machine, and look for Xid 79 in dmesg: it has fallen off the bus"
        found = [
            Finding(
                about="gpu",
                found=f"lost ({why})" if facts.uuid is None else "lost",
                grade="bad",
                advice=advice,
            )
        ]
    else:
        found = [question(facts) for question in QUESTIONS]
        found += [calibration(facts.calibration)] if facts.torch_uses else []
    return [replace(one, gpu=facts.short_uuid) for one in found]


def identity(facts: GpuFacts) -> Finding:
    total, capability = facts.values["memory_total_bytes"], facts.values["compute_capability"]
    parts = [
        facts.values["name"] or f"name not known: {in_words(facts.reasons['name'])}",
        (
            f"{total / 2**30:.1f} GiB"
            if total is not None
            else f"memory not known: {in_words(facts.reasons['memory_total_bytes'])}"
        ),
        *([f"compute capability {capability}"] if capability else []),
        *([f"instance of {facts.instance_of}"] if facts.instance_of else []),
    ]
    return Finding(about="gpu", found=", ".join(parts))


def utilization(facts: GpuFacts) -> Finding:
    """Where a run would take it from, and what the counters of this very moment read."""
    found = f"{facts.tier}: {MEANING[facts.tier]}"
    shown = [f"{name} {value:.0%}" for name, value in readings(facts) if value is not None]
    found += f"; now {', '.join(shown)}" if shown else ""
    if facts.tier == "gpm":
        return Finding(about="utilization", found=found)
    why = in_words(facts.reasons["sm_active_ratio"])
    newer = (
        "a newer driver has them, for Hopper and later"
        if WORDS["NVML_ERROR_FUNCTION_NOT_FOUND"] in why
        else ""
    )
    peaks = (
        "attnbench doctor --calibrate measures peaks to derive it from"
        if facts.tier == "host"
        else ""
    )
    advice = "; ".join(filter(None, (newer, peaks)))
    return Finding(
        about="utilization",
        found=f"{found}; no hardware counters: {why}",
        grade="note",
        advice=advice,
    )


def readings(facts: GpuFacts) -> list[tuple[str, float | None]]:
    names = {
        "kernel_busy_ratio": "busy",
        "sm_active_ratio": "SM active",
        "any_tensor_ratio": "tensor",
        "dram_bandwidth_ratio": "memory",
    }
    return [(word, facts.values.get(name)) for name, word in names.items()]


def clocks(facts: GpuFacts) -> Finding:
    values = facts.values
    if values["sm_clock_mhz"] is None:
        return unknown(facts, "clocks", "sm_clock_mhz")
    parts = [
        f"{word} {values[now]} of {most if (most := values[highest]) is not None else '?'} MHz"
        for word, now, highest in (
            ("SM", "sm_clock_mhz", "max_sm_clock_mhz"),
            ("memory", "memory_clock_mhz", "max_memory_clock_mhz"),
        )
        if values[now] is not None
    ]
    return Finding(about="clocks", found=", ".join(parts))


def throttling(facts: GpuFacts) -> Finding:
    mask = facts.values["clock_event_mask"]
    if mask is None:
        return unknown(facts, "throttling", "clock_event_mask")
    found = "; ".join(words for bit, words in EVENTS.items() if mask & bit) or (
        "none" if not mask else f"mask {mask:#x}"
    )
    if not mask & NVML_THROTTLED:
        return Finding(about="throttling", found=found)
    heat = "let it cool, and look at fans and airflow" if mask & HOT else ""
    power = (
        "let other work on it end, or raise its limit (nvidia-smi -pl, as root)"
        if mask & 0x4
        else ""
    )
    supply = "look at the power supply" if mask & 0x80 else ""
    return Finding(
        about="throttling",
        found=found,
        grade="bad",
        advice="; ".join(filter(None, (heat, power, supply))),
    )


def temperature(facts: GpuFacts) -> Finding:
    now, limit = facts.values["temperature_c"], facts.values["temperature_limit_c"]
    if now is None:
        return unknown(facts, "temperature", "temperature_c")
    found = f"{now} °C" + (f", slows down at {limit} °C" if limit is not None else "")
    near = limit is not None and now > limit - NEAR_LIMIT_C
    return Finding(
        about="temperature",
        found=found,
        grade="note" if near else "ok",
        advice="let it cool before a run" if near else "",
    )


def power(facts: GpuFacts) -> Finding:
    now, limit = facts.values["power_w"], facts.values["power_limit_w"]
    if now is None:
        return unknown(facts, "power", "power_w")
    return Finding(
        about="power",
        found=f"{now:.0f} W" + (f" of at most {limit:.0f} W" if limit is not None else ""),
    )


def ecc(facts: GpuFacts) -> Finding:
    enabled, errors = facts.values["ecc_enabled"], facts.values["uncorrected_ecc_count"]
    if enabled is None:
        return unknown(facts, "ecc", "ecc_enabled", grade="ok")
    if not enabled:
        return Finding(about="ecc", found="off")
    if errors is None:
        return Finding(
            about="ecc",
            found=f"on; errors not known: {in_words(facts.reasons['uncorrected_ecc_count'])}",
            grade="note",
        )
    if errors:
        advice = (
            "results may be wrong: reset the GPU (nvidia-smi -r, as root); have it replaced if they"
            " come back"
        )
        return Finding(
            about="ecc",
            found=f"on, {errors} uncorrected errors since the driver was loaded",
            grade="bad",
            advice=advice,
        )
    return Finding(about="ecc", found="on, no uncorrected error")


def persistence(facts: GpuFacts) -> Finding:
    enabled = facts.values["persistence_enabled"]
    if enabled is None:
        return unknown(facts, "persistence", "persistence_enabled")
    if enabled:
        return Finding(about="persistence", found="on")
    advice = (
        "each first process waits until the GPU is set up, and clocks start low: nvidia-smi -pm 1,"
        " as root"
    )
    return Finding(about="persistence", found="off", grade="note", advice=advice)


def compute_mode(facts: GpuFacts) -> Finding:
    mode = facts.values["compute_mode"]
    if mode is None:
        return unknown(facts, "compute mode", "compute_mode")
    if mode == "prohibited":
        return Finding(
            about="compute mode",
            found=mode,
            grade="bad",
            advice="no program may use this GPU: nvidia-smi -c 0, as root",
        )
    if mode.startswith("exclusive"):
        advice = (
            "runs keep several processes side by side, and only one may use it: --set"
            " plan.processes=1, or nvidia-smi -c 0"
        )
        return Finding(about="compute mode", found=mode, grade="note", advice=advice)
    return Finding(about="compute mode", found=mode)


def mig(facts: GpuFacts) -> Finding:
    enabled = facts.values["mig_enabled"]
    if facts.instance_of is not None:
        advice = "clocks, power and heat are those of the whole GPU, which others may share"
        return Finding(
            about="mig", found="this is an instance, a part of a GPU", grade="note", advice=advice
        )
    if enabled is None:
        return unknown(facts, "mig", "mig_enabled", grade="ok")
    if enabled:
        return Finding(
            about="mig",
            found="on: programs get instances of it",
            grade="note",
            advice="name one in CUDA_VISIBLE_DEVICES (MIG-...)",
        )
    return Finding(about="mig", found="off")


def others(facts: GpuFacts) -> Finding:
    """Work that is not ours would be measured with ours."""
    users, busy = facts.users, busiest(facts)
    working = busy is not None and busy > BUSY_SHARE
    share = f"; the GPU is at work {busy:.0%} of the time" if working else ""
    advice = "wait for it to end, or choose another GPU by CUDA_VISIBLE_DEVICES"
    if users is None:
        found = f"not known: {in_words(facts.reasons['processes'])}{share}"
    elif not users.known:
        listed = (
            f"{len(users.processes)} by numbers of the host"
            if users.processes
            else "none, which may mean that it hides them"
        )
        found = f"cannot be known from inside this container: the driver lists {listed}{share}"
        advice = advice if working else "look at nvidia-smi on the host"
    elif users.foreign:
        found = f"{', '.join(map(named, users.foreign))}{share}"
        advice = advice if working else "idle now; it may start to work at any time"
    else:
        return Finding(
            about="other processes", found=f"none{share}", grade="note" if working else "ok"
        )
    return Finding(
        about="other processes", found=found, grade="bad" if working else "note", advice=advice
    )


def busiest(facts: GpuFacts) -> float | None:
    known = [
        value
        for name in ("kernel_busy_ratio", "sm_active_ratio")
        if (value := facts.values.get(name)) is not None
    ]
    return max(known) if known else None


def named(process: Process) -> str:
    held = (
        f" with {naturalsize(process.used_bytes, binary=True)}"
        if process.used_bytes is not None
        else ""
    )
    return f"process {process.pid}{f' ({process.name})' if process.name else ''}{held}"


def memory(facts: GpuFacts) -> Finding:
    free, used = facts.values["memory_free_bytes"], facts.values["memory_used_bytes"]
    if free is None:
        return unknown(facts, "memory", "memory_free_bytes")
    return Finding(
        about="memory", found=f"{free / 2**30:.1f} GiB free, {naturalsize(used, binary=True)} used"
    )


def unknown(facts: GpuFacts, about: str, name: str, **changes: Any) -> Finding:
    """What the driver refuses."""
    return replace(
        Finding(about=about, found=f"not known: {in_words(facts.reasons[name])}", grade="note"),
        **changes,
    )


def in_words(reason: str) -> str:
    """A reason without the name of NVML's function, which the JSON keeps."""
    function, _, words = reason.partition(": ")
    return words if function.startswith("nvml") and words else reason


QUESTIONS: tuple[Callable[[GpuFacts], Finding], ...] = (
    identity, memory, utilization, others, clocks, throttling, temperature, power, ecc, persistence, compute_mode, mig
)  # fmt: skip
