"""Can I trust it: are results right, were times undisturbed and repeated, is the run complete?

A line each, and all checks behind it. What was not observed is unknown, never good.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import expm1, log
from statistics import median
from typing import Any, Literal, NamedTuple

from ...harness.rows.record import FAILURES
from ..data.exactness import is_exact
from ..data.noise_floor import DISTURBED_RATIO, share_text
from ..data.peaks import places
from ..data.processor_time import disturbed, in_most
from ..data.row_groups import Row, distinguishing_axes, is_timed, label, problem
from ..data.run_meta import UNFINISHED, Meta, cpu_threads, finite_number, ours, plan_of
from ..elements import Badge, Text, caution
from ..formatting import (
    STATUS_WORDS,
    beyond_whole,
    list_text,
    number_text,
    paragraph,
    plural,
    rough_percent_text,
)
from ..judging.pair import of_one_process
from . import Subject
from .correctness import WRONG

TITLE = "All checks"
SECTION = "trust"
ORDER = 0
MOST_NAMED = 4
# Of the median clock: latency follows the clock, and 5 % is the resolution of a quick run.
CLOCK_SPREAD_RATIO = 0.05
FEW_RATIO = 0.05  # of all blocks, or of all calls: a few of them move no median
# Bits of NVML's clock event mask: software power cap, power brake; thermal slowdowns.
POWER_MASK, HEAT_MASK = 0x4 | 0x80, 0x20 | 0x40
SLOWDOWN = 0x8  # NVML's HwSlowdown: heat or power, which it does not say
AGAIN = "measure again"
ONE_THREAD = f"{AGAIN}, with --threads 1 if the machine stays busy"
POWER = "The GPU lowered its clock to stay below its power limit"
QUOTA = "A quota held the processor back"
SOURCES = {
    "selfcheck": "as `attnbench doctor --deep` found",
    "rows": "as the rows of several processes show",
    "assumed": "assumed, not measured",
}
State = Literal["good", "caution", "unknown"]
Amiss = Callable[[Row], bool | None]


class Check(NamedTuple):
    """A sentence, and what else is to be said of it."""

    state: State
    text: str
    more: str = ""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """A line for each item and each check that is amiss."""
    blocks: list[Text] = []
    for item, found in checks(ours(rows, meta), meta).items():
        texts = [(one.state, paragraph(one.text, one.more)) for one in found.values()]
        fine = paragraph(*(text for state, text in texts if state != "caution"))
        blocks += [caution(f"{item}: {text}") for state, text in texts if state == "caution"]
        blocks += [Text(text=f"{item}: {fine}")] if fine else []
    return Subject(blocks=tuple(blocks), lacking="No case was measured here.")


def trust(rows: Sequence[Row], meta: Meta) -> list[Badge]:
    """Four sentences: right, undisturbed, repeated, complete. None without cases of ours."""
    return [_badge(item, found) for item, found in checks(ours(rows, meta), meta).items()]


def _badge(item: str, found: dict[str, Check]) -> Badge:
    """The first check that is amiss, else that is fine; the names of others that are amiss or not
    known.
    """
    states = {name: one.state for name, one in found.items()}
    order: tuple[State, ...] = ("caution", "good", "unknown")
    state = next(one for one in order if one in states.values())
    first = next(name for name in found if states[name] == state)
    amiss, what = ("caution", "Also") if state == "caution" else ("unknown", "Not known")
    others = [name for name in found if states[name] == amiss and name != first]
    rest = f"{what}: {list_text(others)}." if others else ""
    return Badge(label=item, state=state, text=paragraph(found[first].text, rest))


def checks(rows: Sequence[Row], meta: Meta) -> dict[str, dict[str, Check]]:
    """Of each item, by name, those that say something here; empty without cases."""
    timed = [*filter(is_timed, rows)]
    on_gpu = [row for row in timed if row.get("device") == "cuda"]
    many = any((cpu_threads(meta[row["run"]]) or 1) > 1 for row in timed)
    why, then = _held_back(timed)
    interpreted = [row for row in timed if _allocator(meta, row).get("TRITON_INTERPRET") == "1"]
    found: dict[str, dict[str, Check | None]] = {
        "Right": {
            "correctness": _correctness(rows, timed),
            "peak": _peak(timed, meta),
            "interpreter": _interpreter(interpreted, timed) if interpreted else None,
        },
        "Undisturbed": {
            "throttling": _blocks(timed, "throttled_blocks", why, then),
            "contention": _blocks(
                timed,
                "contended_blocks",
                "Other work competed for the same cores",
                ONE_THREAD if many else AGAIN,
            ),
            "clocks": _clocks(on_gpu) if on_gpu else None,
            **{name: _cases(on_gpu, *doubt) for name, doubt in ON_GPU.items()},
        },
        "Repeated": {
            "repeats": _processes(timed),
            "warm-up": _cases(timed, *DRIFTED),
            "precision": _precision(timed, meta) if timed else None,
        },
        "Complete": {"cases": _complete(rows)},
    }
    known = {item: {name: one for name, one in of.items() if one} for item, of in found.items()}
    return known if rows else {}


# ---- what may be wrong with a case's times -------------------------------------------------------


def _others(row: Row) -> bool | None:
    found = (window.get("other_process_count") for window in row.get("windows") or [])
    counts = [count for count in found if type(count) is int]
    return any(counts) if counts else None


def _often_late(row: Row) -> bool | None:
    """Of the calls between events, with a flush of L2 before them and without."""
    every = (process for name in ("block_ms", "hot_block_ms") for process in row.get(name) or ())
    late: int | None = row.get("late_calls")
    calls = sum(len(block) for process in every for block in process)
    return None if late is None else late > FEW_RATIO * calls


def _was_warming(row: Row) -> bool | None:
    stationary = row.get("warmup_stationary")
    return None if stationary is None else not stationary


DRIFTED: tuple[Amiss, str] = (_was_warming, "Times still drifted when the warm-up ended")
ON_GPU: Mapping[str, tuple[Amiss, str]] = {
    "other processes": (_others, "Other processes used the device"),
    "unseen work": (
        lambda row: row.get("unseen_work"),
        "The wall clock saw much more than launching and the time between events",
    ),
    "late calls": (_often_late, "Calls may include launch overhead: the GPU began before its host"),
    "CUDA graphs": (lambda row: row.get("graph_failed"), "Capturing a CUDA graph failed"),
    "launching": (
        lambda row: row.get("launch_bound"),
        "Calls would be over 10 % faster in a CUDA graph",
    ),
}
"""Whether it is so, None if that is not known; and what."""


def _held_back(timed: Sequence[Row]) -> tuple[str, str]:
    """What slowed the device down in blocks that count as throttled, and what to do about it:
    nothing if only power did, as a limit will be met again.
    """
    processes = (process for row in timed for process in row.get("conditions") or [])
    blocks = [block for process in processes for block in process]
    masks = [int(block.get("clock_event_reasons") or 0) for block in blocks]

    def counted(name: str) -> bool:
        return any((block.get(name) or 0) > 0 for block in blocks)

    power = counted("power_throttled_s") or any(mask & POWER_MASK for mask in masks)
    heat = counted("thermal_throttled_s") or any(mask & (HEAT_MASK | SLOWDOWN) for mask in masks)
    if power and not heat and not counted("throttled_s"):
        return POWER, "their times hold for the reduced clock"
    on_gpu = any(row.get("device") == "cuda" for row in timed)
    either = "Power or heat lowered the GPU's clock, or a quota held the processor back"
    return either if on_gpu else QUOTA, AGAIN


# ---- of cases and of blocks ----------------------------------------------------------------------


def _cases(timed: Sequence[Row], amiss: Amiss, what: str, more: str = "") -> Check | None:
    """In how many of these cases `what` is so; None without any case."""
    if not timed:
        return None
    found = [amiss(row) for row in timed]
    if some := [row for row, is_so in zip(timed, found, strict=True) if is_so]:
        text = f"{what} in {_of(len(some), timed)}."
        return Check("caution", text, paragraph(more, _which(some, timed)))
    if silent := found.count(None):
        return Check("unknown", f"{what}: not known of {_of(silent, timed)}.")
    return Check("good", f"{what} in none of {plural(len(timed), 'timed case')}.")


def _blocks(timed: Sequence[Row], field: str, what: str, then: str) -> Check:
    """Such blocks are kept. `then`: what follows if they are most of a case's."""
    known = [row for row in timed if row.get(field) is not None and row.get("blocks")]
    if not known:
        return Check("unknown", f"{what}: not known.")
    some, blocks = (sum(row[name] for row in known) for name in (field, "blocks"))
    mostly = [row for row in timed if in_most(row.get(field), row.get("blocks"))]
    most = f"In {_of(len(mostly), timed)} mostly: {then}." if mostly else ""
    silent = len(timed) - len(known)
    rest = f"Not known of {_of(silent, timed)}." if silent else ""
    is_amiss = mostly or some > FEW_RATIO * blocks
    state: State = "caution" if is_amiss else "unknown" if silent else "good"
    text = f"{what} in {some or 'none'} of {plural(blocks, 'block')}."
    return Check(state, text, paragraph(most, _which(mostly, timed), rest))


def _of(some: int, timed: Sequence[Row]) -> str:
    """`2 of 30 timed cases`, `all 30 timed cases`."""
    return f"{'all' if some == len(timed) > 1 else f'{some} of'} {plural(len(timed), 'timed case')}"


def _which(some: Sequence[Row], timed: Sequence[Row]) -> str:
    """Each case by its backend and the axes that vary; "" of none and of all."""
    if not some or len(some) == len(timed) > 1:
        return ""
    return f"Cases: {list_text(_names(some, timed), MOST_NAMED)}."


def _names(some: Sequence[Row], timed: Sequence[Row]) -> list[str]:
    axes = distinguishing_axes(timed)
    return [f"{row['backend']} at {label(problem(row), axes)}" for row in some]


# ---- one check each ------------------------------------------------------------------------------


def _complete(rows: Sequence[Row]) -> Check:
    counts = Counter(row["status"] for row in rows)
    texts = [f"{count} {STATUS_WORDS[status]}" for status, count in counts.most_common()]
    state: State = "caution" if {*UNFINISHED, *FAILURES} & {*counts} else "good"
    return Check(state, f"{plural(len(rows), 'case')}: {'; '.join(texts)}.")


def _correctness(rows: Sequence[Row], timed: Sequence[Row]) -> Check:
    if wrong := sum(row["status"] == WRONG for row in rows):
        return Check("caution", f"{plural(wrong, 'case')} gave a wrong result and got no latency.")
    exact = [*filter(is_exact, timed)]
    if not exact:
        what = "No timed case is exact attention." if timed else "No case was timed."
        return Check("unknown", what)
    if unchecked := [row for row in exact if row.get("error_ratio") is None]:
        return Check("unknown", f"{_of(len(unchecked), timed)} have no error on record.")
    exempt = len(timed) - len(exact)
    rest = f"; {_of(exempt, timed)} claim no exact result" if exempt else ""
    of = "exact case" if exempt else "case"
    return Check("good", f"Every timed {of} was first checked against a float64 reference{rest}.")


def _peak(timed: Sequence[Row], meta: Meta) -> Check | None:
    """More FLOP/s than calibration measured: rows of earlier versions, or peaks that were too low.

    A run refutes what is beyond the device's limits itself, but those are generous.
    """
    shares = {
        id(one.row): one.achieved_flops_per_s.value / one.peaks.flops_per_s
        for one in places(timed, meta)
        if one.peaks
    }
    runs = (meta[row["run"]].get("calibration") or {} for row in timed)
    clocks = [mhz for one in runs for mhz in (one.get("clocks_mhz") or {}).values()]
    at = f" at {min(clocks):.0f} MHz" if clocks else ""
    return _cases(
        [row for row in timed if id(row) in shares],
        lambda row: beyond_whole(shares[id(row)]),
        f"More FLOP/s than calibration's best matrix product{at} were achieved",
        "The device was busy or its clock lower when it was calibrated, or the work was not done:"
        " calibrate again.",
    )


def _allocator(meta: Meta, row: Row) -> Mapping[str, Any]:
    return (meta[row["run"]].get("environment") or {}).get("allocator") or {}


def _interpreter(some: Sequence[Row], timed: Sequence[Row]) -> Check:
    """attnbench's own kernels refuse it."""
    text = f"Python interpreted Triton kernels (TRITON_INTERPRET=1) in {_of(len(some), timed)}."
    return Check("caution", text, "Results can be checked; times say nothing about the kernels.")


def _clocks(timed: Sequence[Row]) -> Check:
    blocks = (block for row in timed for one in row.get("conditions") or [] for block in one)
    clocks = [block["sm_clock_mhz"] for block in blocks if "sm_clock_mhz" in block]
    if not clocks:
        return Check("unknown", "No block has a reading of the clock.")
    low, high = min(clocks), max(clocks)
    steady = high - low <= CLOCK_SPREAD_RATIO * median(clocks)
    text = f"The GPU's clock varied between {low:.0f} and {high:.0f} MHz."
    return Check("good" if steady else "caution", text)


def _processes(timed: Sequence[Row]) -> Check:
    """And what ratios of cases of one process allow for, which their rows cannot show."""
    counts = [row["processes"] for row in timed if row.get("processes") is not None]
    if not counts:
        return Check("unknown", "The number of processes per case is not known.")
    if min(counts) > 1:
        return Check("good", f"At least {min(counts)} processes measured each case.")
    single = [row for row in timed if of_one_process(row)]
    known = {(row["process_noise_ratio"], row["process_noise_source"]) for row in single}
    noise = sorted((ratio, str(of)) for ratio, of in known if ratio is not None)
    how = [f"ratios allow for {share_text(*one)}, {SOURCES.get(one[1], one[1])}" for one in noise]
    is_busy = any(ratio < DISTURBED_RATIO for ratio, _ in noise) and disturbed(*single)
    beside = f"Beside other work ratios allow for {rough_percent_text(DISTURBED_RATIO)}."
    return Check(
        "caution",
        f"One process per case: {'; '.join(how) or 'no interval includes run-to-run variation'}.",
        paragraph(
            "`attnbench doctor --deep` measures it." if "assumed" in dict(noise).values() else "",
            beside if is_busy else "",
        ),
    )


def _precision(timed: Sequence[Row], meta: Meta) -> Check:
    """How precise latencies are. What a plan had no time for is no fault of the run."""
    if not all(row.get("stop") for row in timed):
        return Check("unknown", "The rows do not say why measuring ended.")
    known = [row for row in timed if row.get("latency_low_ms") and row.get("latency_high_ms")]
    if not known:
        return Check("unknown", "No latency has an interval.")
    goals = {finite_number(plan_of(run), "precision_ratio") for run in meta.values()}
    wanted = " and ".join(f"± {100 * ratio:g} %" for ratio in sorted(filter(None, goals)))
    widest = max(known, key=_width_percent)
    middle, most = map(number_text, (median(map(_width_percent, known)), _width_percent(widest)))
    (name,) = _names([widest], timed)
    text = f"Median uncertainty of a latency: ± {middle} %; worst: ± {most} % ({name})."
    return Check("good", text, f"Requested: {wanted}." if wanted else "")


def _width_percent(row: Row) -> float:
    """Half the width of the latency's interval, on the log scale."""
    return 100 * expm1(log(row["latency_high_ms"] / row["latency_low_ms"]) / 2)
