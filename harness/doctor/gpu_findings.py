"""Grades the facts about one GPU: a function per question, from facts to a Finding.

A refusal by the driver is a finding too.
"""

from collections.abc import Callable
from dataclasses import replace

from humanize import naturalsize

from ..machine.nvml import ERROR_TEXTS, without_function
from ..measure.conditions import NVML_THROTTLED
from ..measure.utilization_tier import MEANING
from ..process.gpu_users import Process
from .finding import Finding, Grade, calibration_finding
from .gpu_facts import GpuFacts

BUSY_SHARE = 0.05
"""Of the observed time, in which nothing of ours runs: beyond it somebody else uses this GPU."""
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


def gpu_findings(facts: GpuFacts) -> list[Finding]:
    """All findings on one GPU; a lost one has a single finding."""
    if facts.lost:
        found = [lost(facts)]
    else:
        found = [question(facts) for question in QUESTIONS]
        found += [calibration_finding(facts.calibration)] if facts.torch_uses else []
    return [replace(one, gpu=facts.short_uuid) for one in found]


def lost(facts: GpuFacts) -> Finding:
    found = "lost" if facts.uuid else f"lost ({facts.reasons['uuid']})"
    advice = "restart the machine; Xid 79 in dmesg means that it has fallen off the bus"
    return Finding("gpu", found, "bad", advice)


def identity(facts: GpuFacts) -> Finding:
    total, capability = facts.values["memory_total_bytes"], facts.values["compute_capability"]
    parts = [
        facts.values["name"] or f"name {unknown(facts, 'name')}",
        (
            f"memory {unknown(facts, 'memory_total_bytes')}"
            if total is None
            else f"{total / 2**30:.1f} GiB"
        ),
        *([f"compute capability {capability}"] if capability else []),
        *([f"instance of {facts.instance_of}"] if facts.instance_of else []),
    ]
    return Finding("gpu", ", ".join(parts))


def memory(facts: GpuFacts) -> Finding:
    free, used = facts.values["memory_free_bytes"], facts.values["memory_used_bytes"]
    if free is None:
        return refused(facts, "memory", "memory_free_bytes")
    return Finding("memory", f"{free / 2**30:.1f} GiB free, {naturalsize(used, binary=True)} used")


def utilization(facts: GpuFacts) -> Finding:
    """The kind that a run would have, and what the counters read now."""
    names = {
        "kernel_busy_ratio": "busy",
        "sm_active_ratio": "SM active",
        "any_tensor_ratio": "tensor",
        "dram_bandwidth_ratio": "memory",
    }
    values = [(word, facts.values.get(name)) for name, word in names.items()]
    shown = ", ".join(f"{word} {100 * value:.0f} %" for word, value in values if value is not None)
    found = f"{facts.tier}: {MEANING[facts.tier]}" + (f"; now {shown}" if shown else "")
    if facts.tier == "gpm":
        return Finding("utilization", found)
    why = without_function(facts.reasons["sm_active_ratio"])
    advice = []
    if ERROR_TEXTS["NVML_ERROR_FUNCTION_NOT_FOUND"] in why:
        advice.append("a newer driver has them, for Hopper and newer GPUs")
    if facts.tier == "host":
        advice.append("attnbench doctor --calibrate measures peaks to derive it from")
    found = f"{found}; no hardware counters: {why}"
    return Finding("utilization", found, "note", "; ".join(advice))


def others(facts: GpuFacts) -> Finding:
    """Work of others would be measured with ours."""
    users = facts.users
    busy = [facts.values.get(name) for name in ("kernel_busy_ratio", "sm_active_ratio")]
    busiest = max((value for value in busy if value is not None), default=0.0)
    working = busiest > BUSY_SHARE
    share = f"; the GPU is busy {100 * busiest:.0f} % of the time" if working else ""
    grade: Grade = "bad" if working else "note"
    advice = "wait for it to end, or choose another GPU with CUDA_VISIBLE_DEVICES"
    if users is None:
        found = unknown(facts, "processes")
    elif not users.known:
        listed = (
            f"{len(users.processes)} with the host's process numbers"
            if users.processes
            else "none, or hides them"
        )
        found = f"unknown inside this container: the driver lists {listed}"
        advice = advice if working else "run nvidia-smi on the host"
    elif users.foreign:
        found = ", ".join(map(described, users.foreign))
        advice = advice if working else "idle now, but may become busy at any time"
    else:
        found, advice, grade = "none", "", "note" if working else "ok"
    return Finding("other processes", f"{found}{share}", grade, advice)


def described(process: Process) -> str:
    name = f" ({process.name})" if process.name else ""
    used = process.used_bytes
    held = "" if used is None else f" with {naturalsize(used, binary=True)}"
    return f"process {process.pid}{name}{held}"


def clocks(facts: GpuFacts) -> Finding:
    values = facts.values
    if values["sm_clock_mhz"] is None:
        return refused(facts, "clocks", "sm_clock_mhz")
    parts = []
    for word, name in (("SM", "sm_clock_mhz"), ("memory", "memory_clock_mhz")):
        now, most = values[name], values[f"max_{name}"]
        if now is not None:
            parts.append(f"{word} {now} of {'?' if most is None else most} MHz")
    return Finding("clocks", ", ".join(parts))


def throttling(facts: GpuFacts) -> Finding:
    mask = facts.values["clock_event_mask"]
    if mask is None:
        return refused(facts, "throttling", "clock_event_mask")
    events = "; ".join(text for bit, text in EVENTS.items() if mask & bit)
    found = events or (f"mask {mask:#x}" if mask else "none")
    if not mask & NVML_THROTTLED:
        return Finding("throttling", found)
    advice = {
        HOT: "let it cool; check fans and airflow",
        0x4: "wait for other work on it, or raise its limit (nvidia-smi -pl, as root)",
        0x80: "check the power supply",
    }
    said = "; ".join(text for bits, text in advice.items() if mask & bits)
    return Finding("throttling", found, "bad", said)


def temperature(facts: GpuFacts) -> Finding:
    now, limit = facts.values["temperature_c"], facts.values["temperature_limit_c"]
    if now is None:
        return refused(facts, "temperature", "temperature_c")
    found = f"{now} °C" + (f", slows down at {limit} °C" if limit is not None else "")
    if limit is not None and now > limit - NEAR_LIMIT_C:
        return Finding("temperature", found, "note", "let it cool before a run")
    return Finding("temperature", found)


def power(facts: GpuFacts) -> Finding:
    now, limit = facts.values["power_w"], facts.values["power_limit_w"]
    if now is None:
        return refused(facts, "power", "power_w")
    most = f" of at most {limit:.0f} W" if limit is not None else ""
    return Finding("power", f"{now:.0f} W{most}")


def ecc(facts: GpuFacts) -> Finding:
    enabled, errors = facts.values["ecc_enabled"], facts.values["uncorrected_ecc_count"]
    if enabled is None:
        return refused(facts, "ecc", "ecc_enabled", grade="ok")
    if not enabled:
        return Finding("ecc", "off")
    if errors is None:
        return Finding("ecc", f"on; errors {unknown(facts, 'uncorrected_ecc_count')}", "note")
    if not errors:
        return Finding("ecc", "on, no uncorrected errors")
    advice = (
        "results may be wrong: reset the GPU (nvidia-smi -r, as root); replace it if they come back"
    )
    found = f"on, {errors} uncorrected errors since the driver was loaded"
    return Finding("ecc", found, "bad", advice)


def persistence(facts: GpuFacts) -> Finding:
    enabled = facts.values["persistence_enabled"]
    if enabled is None:
        return refused(facts, "persistence", "persistence_enabled")
    if enabled:
        return Finding("persistence", "on")
    advice = (
        "the first process waits until the GPU is initialized, and clocks start low: nvidia-smi"
        " -pm 1, as root"
    )
    return Finding("persistence", "off", "note", advice)


def compute_mode(facts: GpuFacts) -> Finding:
    mode = facts.values["compute_mode"]
    if mode is None:
        return refused(facts, "compute mode", "compute_mode")
    if mode == "prohibited":
        advice = "no program may use this GPU: nvidia-smi -c 0, as root"
        return Finding("compute mode", mode, "bad", advice)
    if mode.startswith("exclusive"):
        advice = (
            "a run has several processes, and only one may use the GPU: --set plan.processes=1, or"
            " nvidia-smi -c 0"
        )
        return Finding("compute mode", mode, "note", advice)
    return Finding("compute mode", mode)


def mig(facts: GpuFacts) -> Finding:
    enabled = facts.values["mig_enabled"]
    if facts.instance_of is not None:
        advice = "clocks, power and temperature are those of the whole GPU, which others may use"
        return Finding("mig", "this is an instance, a part of a GPU", "note", advice)
    if enabled is None:
        return refused(facts, "mig", "mig_enabled", grade="ok")
    if enabled:
        advice = "name one in CUDA_VISIBLE_DEVICES (MIG-...)"
        return Finding("mig", "on: programs run on instances of it", "note", advice)
    return Finding("mig", "off")


def refused(facts: GpuFacts, about: str, name: str, grade: Grade = "note") -> Finding:
    """The driver does not give the value `name`."""
    return Finding(about, unknown(facts, name), grade)


def unknown(facts: GpuFacts, name: str) -> str:
    """The JSON keeps the reason with the name of NVML's function."""
    return f"unknown: {without_function(facts.reasons[name])}"


QUESTIONS: tuple[Callable[[GpuFacts], Finding], ...] = (
    identity,
    memory,
    utilization,
    others,
    clocks,
    throttling,
    temperature,
    power,
    ecc,
    persistence,
    compute_mode,
    mig,
)
