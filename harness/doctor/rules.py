"""What doctor says of the facts about a GPU, in a table; host_rules.py has the rest.

Of the rules on one question, the first whose condition holds gives the finding; if none holds there
is none.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from humanize import naturalsize

from ..devices.nvml import ERROR_TEXTS, without_function
from ..measure.conditions import NVML_THROTTLED
from ..rows.readings import MEANING
from .facts import PROHIBITED, Facts

Grade = Literal["ok", "note", "bad"]
Text = str | Callable[[Facts], str]


@dataclass(frozen=True, slots=True)
class Finding:
    """`grade` bad: a run on the GPU is impossible or cannot be trusted.

    `gpu`: the short UUID of the GPU that it is about, "" for the machine.
    """

    about: str
    found: str
    grade: Grade = "ok"
    advice: str = ""
    gpu: str = ""


class Rule(NamedTuple):
    """`found` and `advice`: with the facts in braces, or made of them by a function."""

    about: str
    grade: Grade
    found: Text
    advice: Text = ""
    when: Callable[[Facts], object] = lambda facts: True


def findings(rules: Iterable[Rule], facts: Facts) -> Iterator[Finding]:
    """One on each question, in the order of the rules."""
    answered = set()
    for rule in rules:
        if rule.about not in answered and rule.when(facts):
            answered.add(rule.about)
            found, advice = (
                text.format_map(facts) if isinstance(text, str) else text(facts)
                for text in (rule.found, rule.advice)
            )
            yield Finding(rule.about, found, rule.grade, advice, facts.get("short_uuid", ""))


def gib(size_bytes: float) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


# ---- calibration, of the GPU that torch uses, or of the CPU --------------------------------------


def outcomes(facts: Facts) -> Counter[str]:
    return Counter(check["verdict"] for check in facts["calibration"]["checks"])


def calibrated(facts: Facts) -> str:
    counts = ", ".join(f"{number} {outcome}" for outcome, number in outcomes(facts).items())
    return f"of {facts['calibration']['utc']}: {counts}"


DEEP = "to see utilization as a share of peak, run attnbench doctor --deep once"
REPEAT = (
    "counters or peaks cannot be trusted here: repeat attnbench doctor --deep with nothing else on"
    " this device"
)
CALIBRATION = (
    Rule("calibration", "ok", "none yet", DEEP, lambda f: not f["calibration"]),
    Rule("calibration", "note", calibrated, REPEAT, lambda f: outcomes(f)["off"]),
    Rule("calibration", "ok", calibrated),
)

# ---- a GPU, by facts.read_gpus -------------------------------------------------------------------

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


def unknown(facts: Facts, name: str) -> str:
    """The JSON keeps the reason with the name of NVML's function."""
    return f"unknown: {without_function(facts['reasons'][name])}"


def unread(about: str, name: str, grade: Grade = "note", before: str = "") -> Rule:
    """The driver does not give this fact."""
    return Rule(about, grade, lambda f: before + unknown(f, name), when=lambda f: f[name] is None)


def is_lost(facts: Facts) -> bool:
    lost = ERROR_TEXTS["NVML_ERROR_GPU_IS_LOST"]
    return any(lost in reason for reason in facts["reasons"].values())


def identity(facts: Facts) -> str:
    total, capability = facts["memory_total_bytes"], facts["compute_capability"]
    parts = (
        facts["name"] or f"name {unknown(facts, 'name')}",
        gib(total) if total else f"memory {unknown(facts, 'memory_total_bytes')}",
        f"compute capability {capability}" if capability else "",
        f"instance of {facts['instance_of']}" if facts["instance_of"] else "",
    )
    return ", ".join(filter(None, parts))


def memory(facts: Facts) -> str:
    free, used = gib(facts["memory_free_bytes"]), facts["memory_used_bytes"]
    if used is None:
        return f"{free} of the host's memory free, which the GPU shares"
    return f"{free} free, {naturalsize(used, binary=True)} used"


def utilization(facts: Facts) -> str:
    """The kind that a run would have, and what the counters read now."""
    names = {
        "kernel_busy_ratio": "busy",
        "sm_active_ratio": "SM active",
        "any_tensor_ratio": "tensor",
        "dram_bandwidth_ratio": "memory",
    }
    known = {word: facts[name] for name, word in names.items() if facts[name] is not None}
    now = ", ".join(f"{word} {100 * value:.0f} %" for word, value in known.items())
    kind = f"{facts['tier']}: {MEANING[facts['tier']]}" + (f"; now {now}" if now else "")
    return kind if facts["gpm"] else f"{kind}; no hardware counters: {why_no_counters(facts)}"


def why_no_counters(facts: Facts) -> str:
    return without_function(facts["reasons"]["sm_active_ratio"])


def for_counters(facts: Facts) -> str:
    too_old = ERROR_TEXTS["NVML_ERROR_FUNCTION_NOT_FOUND"] in why_no_counters(facts)
    advice = ["a newer driver has them, for Hopper and newer GPUs"] * too_old
    if facts["tier"] == "host":
        advice.append("attnbench doctor --deep measures peaks to derive it from")
    return "; ".join(advice)


def busiest(facts: Facts) -> float:
    return max(facts["kernel_busy_ratio"] or 0.0, facts["sm_active_ratio"] or 0.0)


def is_busy(facts: Facts) -> bool:
    return busiest(facts) > BUSY_SHARE


def others(facts: Facts) -> str:
    """Work of others would be measured with ours."""
    listed, busy = facts["processes"], ""
    if is_busy(facts):
        busy = f"; the GPU is busy {100 * busiest(facts):.0f} % of the time"
    if listed is None:
        return unknown(facts, "processes") + busy
    if facts["processes_known"]:
        return (", ".join(map(described, foreign(facts))) or "none") + busy
    numbers = f"{len(listed)} with the host's process numbers" if listed else "none, or hides them"
    return f"unknown inside this container: the driver lists {numbers}{busy}"


def foreign(facts: Facts) -> list[Facts]:
    return [process for process in facts["processes"] if process["ours"] is False]


def nobody(facts: Facts) -> bool:
    return facts["processes_known"] and not foreign(facts)


def described(process: Facts) -> str:
    name = f" ({process['name']})" if process["name"] else ""
    used = process["used_bytes"]
    held = "" if used is None else f" with {naturalsize(used, binary=True)}"
    return f"process {process['pid']}{name}{held}"


def clocks(facts: Facts) -> str:
    parts = []
    for word, name in (("SM", "sm_clock_mhz"), ("memory", "memory_clock_mhz")):
        now, most = facts[name], facts[f"max_{name}"]
        if now is not None:
            parts.append(f"{word} {now} of {'?' if most is None else most} MHz")
    if not (facts["clock_event_mask"] or 0) & USER_CLOCKS:
        parts.append("not known to be locked (nvidia-smi --lock-gpu-clocks=tdp,tdp, as root, does)")
    return ", ".join(parts)


def events(facts: Facts) -> str:
    mask = facts["clock_event_mask"]
    return chosen(EVENTS, mask) or (f"mask {mask:#x}" if mask else "none")


def chosen(texts: dict[int, str], mask: int) -> str:
    return "; ".join(text for bits, text in texts.items() if mask & bits)


def near_limit(facts: Facts) -> bool:
    limit = facts["temperature_limit_c"]
    return limit is not None and facts["temperature_c"] > limit - NEAR_LIMIT_C


def temperature(facts: Facts) -> str:
    limit = facts["temperature_limit_c"]
    return f"{facts['temperature_c']} °C" + ("" if limit is None else f", slows down at {limit} °C")


def power(facts: Facts) -> str:
    limit = facts["power_limit_w"]
    return f"{facts['power_w']:.0f} W" + ("" if limit is None else f" of at most {limit:.0f} W")


def remedies(facts: Facts) -> str:
    return chosen(REMEDIES, facts["clock_event_mask"])


def is_prohibited(facts: Facts) -> bool:
    return bool(facts["compute_mode"] == PROHIBITED)


FREE_IT = "wait for it to end, or choose another GPU with CUDA_VISIBLE_DEVICES"
IDLE_NOW = "idle now, but may become busy at any time"
ERRORS = "on, {uncorrected_ecc_count} uncorrected errors since the driver was loaded"
RESET = "results may be wrong: reset the GPU (nvidia-smi -r, as root); replace it if they come back"
SLOW_START = (
    "the first process waits until the GPU is initialized, and clocks start low: nvidia-smi -pm 1,"
    " as root"
)
PERMIT = "no program may use this GPU: nvidia-smi -c 0, as root"
ONE_OF_THEM = "name one in CUDA_VISIBLE_DEVICES (MIG-...)"
PART = "this is an instance, a part of a GPU"
OF_WHOLE = "clocks, power and temperature are those of the whole GPU, which others may use"
GPU_RULES = (
    Rule("gpu", "ok", identity),
    unread("memory", "memory_free_bytes"),
    Rule("memory", "ok", memory),
    Rule("utilization", "ok", utilization, when=lambda f: f["gpm"]),
    Rule("utilization", "note", utilization, for_counters),
    Rule("other processes", "note", others, when=lambda f: nobody(f) and is_busy(f)),
    Rule("other processes", "ok", others, when=nobody),
    Rule("other processes", "bad", others, FREE_IT, is_busy),
    Rule("other processes", "note", others, FREE_IT, lambda f: f["processes"] is None),
    Rule("other processes", "note", others, IDLE_NOW, lambda f: f["processes_known"]),
    Rule("other processes", "note", others, "run nvidia-smi on the host"),
    unread("clocks", "sm_clock_mhz"),
    Rule("clocks", "ok", clocks),
    unread("throttling", "clock_event_mask"),
    Rule("throttling", "bad", events, remedies, lambda f: f["clock_event_mask"] & NVML_THROTTLED),
    Rule("throttling", "ok", events),
    unread("temperature", "temperature_c"),
    Rule("temperature", "note", temperature, "let it cool before a run", near_limit),
    Rule("temperature", "ok", temperature),
    unread("power", "power_w"),
    Rule("power", "ok", power),
    unread("ecc", "ecc_enabled", "ok"),  # a GPU may well lack it
    Rule("ecc", "ok", "off", when=lambda f: not f["ecc_enabled"]),
    unread("ecc", "uncorrected_ecc_count", before="on; errors "),
    Rule("ecc", "ok", "on, no uncorrected errors", when=lambda f: not f["uncorrected_ecc_count"]),
    Rule("ecc", "bad", ERRORS, RESET),
    unread("persistence", "persistence_enabled"),
    Rule("persistence", "ok", "on", when=lambda f: f["persistence_enabled"]),
    Rule("persistence", "note", "off", SLOW_START),
    unread("compute mode", "compute_mode"),
    Rule("compute mode", "bad", "{compute_mode}", PERMIT, is_prohibited),
    Rule("compute mode", "ok", "{compute_mode}"),
    Rule("mig", "note", PART, OF_WHOLE, lambda f: f["instance_of"] is not None),
    unread("mig", "mig_enabled", "ok"),
    Rule("mig", "ok", "off", when=lambda f: not f["mig_enabled"]),
    Rule("mig", "note", "on: programs run on instances of it", ONE_OF_THEM),
)
XID = "restart the machine; Xid 79 in dmesg means that it has fallen off the bus"
LOST = (
    Rule("gpu", "bad", "lost", XID, lambda f: f["uuid"]),
    Rule("gpu", "bad", "lost ({reasons[uuid]})", XID),
)
