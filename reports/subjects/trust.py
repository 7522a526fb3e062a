"""Can I trust it: are results right, were times undisturbed and repeated, is the run complete?

What was not observed is unknown, never good.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import expm1, log
from statistics import median
from typing import Any, Literal

from ...harness.rows.record import FAILURES
from ..data.exactness import is_exact
from ..data.noise_floor import DISTURBED_RATIO, share_text
from ..data.peaks import places
from ..data.processor_time import disturbed, in_most
from ..data.row_groups import Row, distinguishing_axes, is_timed, label, problem
from ..data.run_meta import UNFINISHED, Meta, cpu_threads, ours, plan_of
from ..elements import Badge, Text
from ..formatting import (
    STATUS_WORDS,
    beyond_whole,
    capital,
    list_text,
    number_text,
    plural,
    rough_percent_text,
)
from ..judging.pair import of_one_process
from . import Subject
from ._gpu_doubts import GPU_DOUBTS, QUOTA, held_back, is_in_doubt, power_only
from .correctness import WRONG

TITLE = "Can I trust it?"
SECTION = "trust"
ORDER = 0
MOST_NAMED = 4
# Of the median clock: latency follows the clock, and 5 % is the resolution of a quick run.
CLOCK_SPREAD_RATIO = 0.05
State = tuple[Literal["good", "caution", "unknown"], str]  # and a sentence
FEW_RATIO = 0.05  # of all blocks: a few of them move no median
NOTHING_TIMED: State = ("unknown", "No case was timed.")
DISTURBANCES = {  # column: its badge, and what happened
    "throttled_blocks": ("throttling", QUOTA),
    "contended_blocks": ("contention", "other work competed for the same cores"),
}
ONE_THREAD = (
    ", with --threads 1 if the machine stays busy: several threads wait for the slowest of them"
)
MEASURE_AGAIN = ": measure again"
DISTURBED = ("clocks", "throttling", "contention", "other processes")
PARTS = (
    ("Right", ("correctness", "peak", "interpreter")),
    ("Undisturbed", (*DISTURBED, "GPU timing", "launching")),
    ("Repeated", ("repeats", "warm-up", "precision")),
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    return Subject(
        blocks=tuple(
            Text(
                text=f"{one.label}: {one.text}",
                kind="caution" if one.state == "caution" else "finding",
            )
            for one in trust(rows, meta)
        ),
        lacking="No case was measured here.",
    )


def trust(rows: Sequence[Row], meta: Meta) -> list[Badge]:
    """Four sentences: right, undisturbed, repeated, complete. None without cases of ours."""
    rows = ours(rows, meta)
    if not rows:
        return []
    found = checks(list(rows), meta)
    if found["repeats"][0] == "caution":  # what one process misses needs no second word
        found.pop("precision")
    return [
        *(_sentence(label, [found[name] for name in of if name in found]) for label, of in PARTS),
        _complete(rows, meta),
    ]


def _sentence(label: str, found: Sequence[State]) -> Badge:
    """What is amiss, else what is fine; what is not known only if nothing is."""
    states = [state for state, _ in found]
    order: tuple[Literal["good", "caution", "unknown"], ...] = ("caution", "good", "unknown")
    state = next(one for one in order if one in states)
    texts = dict.fromkeys(text for one, text in found if one == state)
    return Badge(label=label, state=state, text=" ".join(texts))


def _complete(rows: Sequence[Row], meta: Meta) -> Badge:
    counts = Counter(row["status"] for row in rows)
    texts = [f"{count} {STATUS_WORDS[status]}" for status, count in counts.most_common()]
    return Badge(
        label="Complete",
        state="good" if not {*UNFINISHED, *FAILURES} & {*counts} else "caution",
        text=f"{plural(len(rows), 'case')}: {'; '.join(texts)}.",
    )


# ---- checks --------------------------------------------------------------------------------------


def checks(rows: list[Row], meta: Meta) -> dict[str, State]:
    timed = list(filter(is_timed, rows))
    states: dict[str, State] = {
        "clocks": _clocks(timed),
        **{name: _blocks(timed, field, meta) for field, (name, _) in DISTURBANCES.items()},
        "other processes": _other_processes(timed),
        "warm-up": _warm_up(timed),
        "precision": _intervals(timed, meta),
        "repeats": _processes(timed),
        "correctness": _correctness(rows, timed),
    }
    if on_gpu := [row for row in timed if row.get("device") == "cuda"]:
        states["GPU timing"] = _gpu_timing(on_gpu)
    if some := [row for row in timed if row.get("launch_bound")]:
        states["launching"] = (
            "caution",
            f"In {_of(some, timed)} a call and its wait take more than 1.1 times as long as the"
            " same work in a CUDA graph.",
        )
    if some := _faster_than_limits(timed, meta):
        states["peak"] = (
            "caution",
            f"In {_of(some, timed)} more FLOP/s were achieved than by calibration's best matrix"
            f" product{_clock_of_peak(some, meta)}: that is no peak of this device. It was busy,"
            " its clock was lower, or the work was not done; calibrate again.",
        )
    if notes := _interpreted(rows, meta):
        states["interpreter"] = ("caution", " ".join(notes))
    return states


def _allowances(rows: list[Row]) -> list[str]:
    """What ratios of cases of one process allow for, which their rows cannot show."""
    single = [row for row in rows if of_one_process(row)]
    known = {
        (ratio, str(row.get("process_noise_source")), row.get("device") == "cuda")
        for row in single
        if (ratio := row.get("process_noise_ratio")) is not None
    }
    how = {
        "selfcheck": "as attnbench doctor --deep found",
        "rows": "as the rows of several processes show",
        "assumed": "which is assumed: attnbench doctor --deep measures it",
    }
    of_an_h200 = ", after six processes on an H200"
    more = f"; where other work disturbed one of the two, for {rough_percent_text(DISTURBED_RATIO)}"
    more = more if any(map(disturbed, single)) else ""
    return [
        f"ratios allow for {share_text(ratio, source)}, {how.get(source, source)}"
        f"{of_an_h200 if on_gpu and source == 'assumed' else ''}"
        f"{more if ratio < DISTURBED_RATIO else ''}"
        for ratio, source, on_gpu in sorted(known)
    ]


def _interpreted(rows: list[Row], meta: Meta) -> list[str]:
    """Triton's interpreter does in Python what a kernel does; attnbench's own kernels refuse it."""
    names = {row["run"] for row in filter(is_timed, rows)}
    facts = [meta[name].get("environment") or {} for name in names]
    if not any((one.get("allocator") or {}).get("TRITON_INTERPRET") == "1" for one in facts):
        return []
    return [
        "TRITON_INTERPRET=1 was set: Triton kernels ran in Python's interpreter, whose results can"
        " be checked, but whose times say nothing about the kernels."
    ]


# ---- words ---------------------------------------------------------------------------------------


def _count(count: int, timed: list[Row]) -> str:
    """`2 of 30 timed cases`."""
    return f"{count} of {plural(len(timed), 'timed case')}"


def _of(found: list[Row], timed: Iterable[Row]) -> str:
    """`2 of 30 timed cases (fused at N = 256 and sdpa at N = 256)`."""
    every = list(timed)
    if len(found) == len(every) > 1:
        return f"all {plural(len(every), 'timed case')}"
    return f"{_count(len(found), every)} ({_named(found, every)})"


def _named(found: list[Row], timed: Iterable[Row]) -> str:
    """Each case by its backend and the axes that vary."""
    axes = distinguishing_axes(timed)
    texts = [f"{row['backend']} at {label(problem(row), axes)}" for row in found]
    return list_text(texts, MOST_NAMED)


# ---- one check each ------------------------------------------------------------------------------


def _clocks(timed: list[Row]) -> State:
    clocks = [
        block["sm_clock_mhz"]
        for row in timed
        for process in row.get("conditions") or []
        for block in process
        if "sm_clock_mhz" in block
    ]
    if not clocks:
        on_cpu = "On a CPU, clocks are not read per block."
        return "unknown", on_cpu if _all_on_cpu(timed) else "No block has a reading."
    low, high = min(clocks), max(clocks)
    steady = high - low <= CLOCK_SPREAD_RATIO * median(clocks)
    return "good" if steady else "caution", f"{low:.0f} to {high:.0f} MHz over all blocks."


def _blocks(timed: list[Row], field: str, meta: Meta) -> State:
    """Such blocks are kept."""
    throttling = field == "throttled_blocks"
    what = held_back(timed) if throttling else DISTURBANCES[field][1]
    power = throttling and power_only(timed)
    known = [row for row in timed if row.get(field) is not None and row.get("blocks")]
    if not known:
        return "unknown", f"It is not known whether {what}."
    some, blocks = sum(row[field] for row in known), sum(row["blocks"] for row in known)
    text = f"In {some or 'none'} of {plural(blocks, 'block')} {what}."
    if mostly := [row for row in timed if in_most(row.get(field), row.get("blocks"))]:
        text += f" In {_of(mostly, timed)} it was more than half of the blocks"
        text += ", as in all long work: times are those of this clock" if power else MEASURE_AGAIN
        threads = [cpu_threads(meta[row["run"]]) or 1 for row in mostly]
        waits = field == "contended_blocks" and max(threads) > 1
        text += f"{ONE_THREAD if waits else ''}."
    silent = len(timed) - len(known)
    text += f" {plural(silent, 'case')} of {len(timed)} do not say." if silent else ""
    if mostly or some > FEW_RATIO * blocks:
        return "caution", text
    return "unknown" if silent else "good", text


def _other_processes(timed: list[Row]) -> State:
    windows = (window for row in timed for window in row.get("windows") or [])
    found = (window.get("other_process_count") for window in windows)
    counts = [count for count in found if type(count) is int]
    if not counts:
        on_cpu = "A CPU is always shared; see contention."
        return "unknown", on_cpu if _all_on_cpu(timed) else "Not observed, or hidden by the driver."
    some = sum(count > 0 for count in counts)
    text = f"Others used the device in {some or 'none'} of {plural(len(counts), 'window')}."
    return "caution" if some else "good", text


def _warm_up(timed: list[Row]) -> State:
    found = [row.get("warmup_stationary") for row in timed]
    if unsteady := [row for row in timed if row.get("warmup_stationary") is False]:
        return "caution", f"Call times were not stationary in {_of(unsteady, timed)}."
    if not timed:
        return NOTHING_TIMED
    if unknown := found.count(None):
        where = _count(unknown, timed)
        return "unknown", f"It is not known whether call times were stationary in {where}."
    return "good", "Call times were stationary before they were measured."


def _intervals(timed: list[Row], meta: Meta) -> State:
    """How precise latencies are. What a plan had no time for is no fault of the run."""
    if not timed:
        return NOTHING_TIMED
    if not all(row.get("stop") for row in timed):
        return "unknown", "The rows do not say why measuring ended."
    requested = {ratio for run in meta.values() if (ratio := precision_ratio(run)) is not None}
    percents = " and ".join(f"{100 * ratio:g} %" for ratio in sorted(requested))
    goal = f" of ± {percents}" if percents else ""
    if not any(missed(row, precision_ratio(meta[row["run"]])) for row in timed):
        return "good", f"Every timed case reached the requested interval{goal}."
    known = [row for row in timed if row.get("latency_low_ms") and row.get("latency_high_ms")]
    if not known:
        return "unknown", f"No latency has an interval{f'; ± {percents} was wanted' * bool(goal)}."
    widest = max(known, key=_width_percent)
    middle, most = map(number_text, (median(map(_width_percent, known)), _width_percent(widest)))
    return (
        "good",
        f"Latencies are known to ± {middle} % in the middle, ± {most} % at most"
        f" ({_named([widest], timed)}).",
    )


def _width_percent(row: Row) -> float:
    """Half the width of the latency's interval, on the log scale."""
    return 100 * expm1(log(row["latency_high_ms"] / row["latency_low_ms"]) / 2)


def missed(row: Row, precision_ratio: float | None) -> bool:
    """Sampling ended before the requested precision of the latency and of its reported ratio.

    It ended by time, or by the most blocks of the plan.
    """
    if row.get("stop") not in ("budget", "blocks"):
        return False
    widths = (row.get("half_width_ratio"), row.get("pair_half_width_ratio"))
    widest = max(width or 0.0 for width in widths)
    return precision_ratio is None or widths[0] is None or widest > precision_ratio


def precision_ratio(run: Any) -> float | None:
    """The precision that the plan requested, if run.json has it."""
    requested = plan_of(run).get("precision_ratio")
    return requested if type(requested) in (int, float) else None


def _processes(timed: list[Row]) -> State:
    counts = [row["processes"] for row in timed if row.get("processes") is not None]
    if not counts:
        return "unknown", "The number of processes per case is not known."
    if min(counts) == 1:
        allowed = "; ".join(_allowances(timed)) or "no interval includes run-to-run variation"
        return "caution", f"One process per case: {allowed}."
    return "good", f"At least {min(counts)} processes measured each case."


def _correctness(rows: list[Row], timed: list[Row]) -> State:
    if wrong := sum(row["status"] == WRONG for row in rows):
        return "caution", f"{plural(wrong, 'case')} gave a wrong result and got no latency."
    if not timed:
        return NOTHING_TIMED
    exact = [row for row in timed if is_exact(row)]
    if unchecked := sum(row.get("error_ratio") is None for row in exact):
        return "unknown", f"{_count(unchecked, timed)} have no error on record."
    if not exact:
        return "unknown", "No timed case is exact attention."
    text = "Every timed {}case was first checked against a float64 reference{}."
    if len(exact) == len(timed):
        return "good", text.format("", "")
    exempt = f"; {_count(len(timed) - len(exact), timed)} claim no exact result"
    return "good", text.format("exact ", exempt)


def _gpu_timing(timed: list[Row]) -> State:
    """Whether events, the wall clock and CUDA graphs tell the same story."""
    doubts = [
        f"in {_of(some, timed)} {what}"
        for flag, what in GPU_DOUBTS.items()
        if (some := [row for row in timed if is_in_doubt(row, flag)])
    ]
    if doubts:
        return "caution", f"{capital('; '.join(doubts))}."
    if any(row.get(flag) is None for row in timed for flag in GPU_DOUBTS):
        return "unknown", "Not every case says whether events and wall clock agree."
    return "good", "Events and wall clock agree, and no CUDA graph failed."


def _faster_than_limits(timed: list[Row], meta: Meta) -> list[Row]:
    """More FLOP/s than calibration measured: rows of earlier versions, or peaks that were too low.

    A run refutes what is beyond the device's limits itself, but those are generous.
    """
    return [
        place.row
        for place in places(timed, meta)
        if place.peaks and beyond_whole(place.achieved_flops_per_s.value / place.peaks.flops_per_s)
    ]


def _clock_of_peak(rows: list[Row], meta: Meta) -> str:
    """The lowest, of a GPU."""
    runs = (meta[row["run"]].get("calibration") or {} for row in rows)
    clocks = [mhz for one in runs for mhz in (one.get("clocks_mhz") or {}).values()]
    return f" at {min(clocks):.0f} MHz" if clocks else ""


def _all_on_cpu(timed: list[Row]) -> bool:
    return all(row.get("device") == "cpu" for row in timed)
