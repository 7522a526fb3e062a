"""Grades the facts about one GPU: a function per question, from facts to what is said of it.

A refusal by the driver is a finding too.
"""

from collections.abc import Callable
from typing import NamedTuple

from humanize import naturalsize

from ..devices.gpu_users import Process, Users
from ..devices.nvml import ERROR_TEXTS, without_function
from ..measure.conditions import NVML_THROTTLED
from ..rows.readings import MEANING
from . import Finding, Grade, calibration_finding
from .gpu_facts import GpuFacts

BUSY_SHARE = 0.05
"""Of the observed time, in which nothing of ours runs: beyond it somebody else uses this GPU."""
NEAR_LIMIT_C = 5
USER_CLOCKS = 0x2  # the driver has no query for locked clocks; this bit is set if they limit it
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
REMEDIES = {
    0x8 | 0x20 | 0x40: "let it cool; check fans and airflow",
    0x4: "wait for other work on it, or raise its limit (nvidia-smi -pl, as root)",
    0x80: "check the power supply",
}


class Said(NamedTuple):
    """A finding without what it is about."""

    found: str
    grade: Grade = "ok"
    advice: str = ""


def gpu_findings(facts: GpuFacts) -> list[Finding]:
    """All findings on one GPU; a lost one has a single finding."""
    gpu = facts.short_uuid
    if facts.lost:
        return [Finding("gpu", *lost(facts), gpu=gpu)]
    found = []
    for about, needed, question in QUESTIONS:
        if needed and facts.value(needed) is None:  # the driver does not give it
            grade: Grade = "ok" if about in OPTIONAL else "note"
            found.append(Finding(about, unknown(facts, needed), grade, gpu=gpu))
        else:
            found.append(Finding(about, *question(facts), gpu=gpu))
    if facts.torch_uses:
        found.append(calibration_finding(facts.calibration, gpu))
    return found


def lost(facts: GpuFacts) -> Said:
    found = "lost" if facts.value("uuid") else f"lost ({facts.readings['uuid'].reason})"
    advice = "restart the machine; Xid 79 in dmesg means that it has fallen off the bus"
    return Said(found, "bad", advice)


def identity(facts: GpuFacts) -> Said:
    name, total = facts.value("name"), facts.value("memory_total_bytes")
    capability = facts.value("compute_capability")
    parts = [
        name or f"name {unknown(facts, 'name')}",
        f"{total / 2**30:.1f} GiB" if total else f"memory {unknown(facts, 'memory_total_bytes')}",
        *([f"compute capability {capability}"] if capability else []),
        *([f"instance of {facts.instance_of}"] if facts.instance_of else []),
    ]
    return Said(", ".join(parts))


def memory(facts: GpuFacts) -> Said:
    free, used = facts.value("memory_free_bytes"), facts.value("memory_used_bytes")
    if used is None:
        return Said(f"{free / 2**30:.1f} GiB of the host's memory free, which the GPU shares")
    return Said(f"{free / 2**30:.1f} GiB free, {naturalsize(used, binary=True)} used")


def utilization(facts: GpuFacts) -> Said:
    """The kind that a run would have, and what the counters read now."""
    names = {
        "kernel_busy_ratio": "busy",
        "sm_active_ratio": "SM active",
        "any_tensor_ratio": "tensor",
        "dram_bandwidth_ratio": "memory",
    }
    values = [(word, facts.value(name)) for name, word in names.items()]
    shown = ", ".join(f"{word} {100 * value:.0f} %" for word, value in values if value is not None)
    found = f"{facts.tier}: {MEANING[facts.tier]}" + (f"; now {shown}" if shown else "")
    if facts.tier == "gpm":
        return Said(found)
    why = without_function(facts.readings["sm_active_ratio"].reason)
    advice = []
    if ERROR_TEXTS["NVML_ERROR_FUNCTION_NOT_FOUND"] in why:
        advice.append("a newer driver has them, for Hopper and newer GPUs")
    if facts.tier == "host":
        advice.append("attnbench doctor --deep measures peaks to derive it from")
    return Said(f"{found}; no hardware counters: {why}", "note", "; ".join(advice))


def others(facts: GpuFacts) -> Said:
    """Work of others would be measured with ours."""
    users: Users | None = facts.value("processes")
    busy = [facts.value(name) for name in ("kernel_busy_ratio", "sm_active_ratio")]
    busiest = max((value for value in busy if value is not None), default=0.0)
    working = busiest > BUSY_SHARE
    share = f"; the GPU is busy {100 * busiest:.0f} % of the time" if working else ""
    if users is not None and users.known and not users.foreign:
        return Said(f"none{share}", "note" if working else "ok")
    idle = ""
    if users is None:
        found = unknown(facts, "processes")
    elif users.known:
        found = ", ".join(map(described, users.foreign))
        idle = "idle now, but may become busy at any time"
    else:
        count = len(users.processes)
        listed = f"{count} with the host's process numbers" if count else "none, or hides them"
        found = f"unknown inside this container: the driver lists {listed}"
        idle = "run nvidia-smi on the host"
    advice = "wait for it to end, or choose another GPU with CUDA_VISIBLE_DEVICES"
    return Said(
        f"{found}{share}", "bad" if working else "note", advice if working else idle or advice
    )


def described(process: Process) -> str:
    name = f" ({process.name})" if process.name else ""
    used = process.used_bytes
    held = "" if used is None else f" with {naturalsize(used, binary=True)}"
    return f"process {process.pid}{name}{held}"


def clocks(facts: GpuFacts) -> Said:
    parts = []
    for word, name in (("SM", "sm_clock_mhz"), ("memory", "memory_clock_mhz")):
        now, most = facts.value(name), facts.value(f"max_{name}")
        if now is not None:
            parts.append(f"{word} {now} of {'?' if most is None else most} MHz")
    if not (facts.value("clock_event_mask") or 0) & USER_CLOCKS:
        parts.append("not known to be locked (nvidia-smi --lock-gpu-clocks=tdp,tdp, as root, does)")
    return Said(", ".join(parts))


def throttling(facts: GpuFacts) -> Said:
    mask = facts.value("clock_event_mask")
    events = "; ".join(text for bit, text in EVENTS.items() if mask & bit)
    found = events or (f"mask {mask:#x}" if mask else "none")
    if not mask & NVML_THROTTLED:
        return Said(found)
    return Said(found, "bad", "; ".join(text for bits, text in REMEDIES.items() if mask & bits))


def temperature(facts: GpuFacts) -> Said:
    now, limit = facts.value("temperature_c"), facts.value("temperature_limit_c")
    if limit is None:
        return Said(f"{now} °C")
    found = f"{now} °C, slows down at {limit} °C"
    near = now > limit - NEAR_LIMIT_C
    return Said(found, "note", "let it cool before a run") if near else Said(found)


def power(facts: GpuFacts) -> Said:
    now, limit = facts.value("power_w"), facts.value("power_limit_w")
    return Said(f"{now:.0f} W" + (f" of at most {limit:.0f} W" if limit is not None else ""))


def ecc(facts: GpuFacts) -> Said:
    errors = facts.value("uncorrected_ecc_count")
    if not facts.value("ecc_enabled"):
        return Said("off")
    if errors is None:
        return Said(f"on; errors {unknown(facts, 'uncorrected_ecc_count')}", "note")
    if not errors:
        return Said("on, no uncorrected errors")
    advice = (
        "results may be wrong: reset the GPU (nvidia-smi -r, as root); replace it if they come back"
    )
    return Said(f"on, {errors} uncorrected errors since the driver was loaded", "bad", advice)


def persistence(facts: GpuFacts) -> Said:
    if facts.value("persistence_enabled"):
        return Said("on")
    advice = (
        "the first process waits until the GPU is initialized, and clocks start low: nvidia-smi"
        " -pm 1, as root"
    )
    return Said("off", "note", advice)


def compute_mode(facts: GpuFacts) -> Said:
    mode = facts.value("compute_mode")
    if mode == "prohibited":
        return Said(mode, "bad", "no program may use this GPU: nvidia-smi -c 0, as root")
    return Said(mode)


def mig(facts: GpuFacts) -> Said:
    if facts.instance_of is not None:
        advice = "clocks, power and temperature are those of the whole GPU, which others may use"
        return Said("this is an instance, a part of a GPU", "note", advice)
    if facts.value("mig_enabled") is None:
        return Said(unknown(facts, "mig_enabled"))
    if not facts.value("mig_enabled"):
        return Said("off")
    advice = "name one in CUDA_VISIBLE_DEVICES (MIG-...)"
    return Said("on: programs run on instances of it", "note", advice)


def unknown(facts: GpuFacts, name: str) -> str:
    """The JSON keeps the reason with the name of NVML's function."""
    return f"unknown: {without_function(facts.readings[name].reason)}"


QUESTIONS: tuple[tuple[str, str, Callable[[GpuFacts], Said]], ...] = (
    ("gpu", "", identity),
    ("memory", "memory_free_bytes", memory),
    ("utilization", "", utilization),
    ("other processes", "", others),
    ("clocks", "sm_clock_mhz", clocks),
    ("throttling", "clock_event_mask", throttling),
    ("temperature", "temperature_c", temperature),
    ("power", "power_w", power),
    ("ecc", "ecc_enabled", ecc),
    ("persistence", "persistence_enabled", persistence),
    ("compute mode", "compute_mode", compute_mode),
    ("mig", "", mig),
)
"""What a finding is about, the value that it needs ("" for none), and what is said of it."""
OPTIONAL = ("ecc",)
"""What a GPU may well lack."""
