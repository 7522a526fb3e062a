"""Badges: reasons to trust the latencies of a page, or not.

What was not observed is unknown, never good.
"""

from statistics import median
from typing import Literal

from ..comparison.devices import Copies, copies_of
from ..comparison.devices_text import finding
from ..data.exactness import is_exact
from ..data.row_groups import Row
from ..data.run_meta import Meta
from ..elements import Badge
from ..formatting import list_text, plural
from ._trust import missed, of_timed, precision_ratio, timed_rows
from .correctness import WRONG

# Of the median clock: latency follows the clock, and 5 % is the resolution of a quick run.
CLOCK_SPREAD_RATIO = 0.05
State = tuple[Literal["good", "caution", "unknown"], str]  # and a sentence
THROTTLED = "the processor was throttled by a quota, power or heat"
CONTENDED = "other work competed for the same cores"
NOTHING_TIMED: State = ("unknown", "No case was timed.")


def badges(rows: list[Row], meta: Meta) -> tuple[Badge, ...]:
    timed = timed_rows(rows)
    states: dict[str, State] = {
        "clocks": _clocks(timed),
        "throttling": _counted(timed, "throttled_blocks", THROTTLED),
        "contention": _counted(timed, "contended_blocks", CONTENDED),
        "other processes": _other_processes(timed),
        "warm-up": _warm_up(timed),
        "precision": _intervals(timed, meta),
        "repeats": _processes(timed),
        "correctness": _correctness(rows, timed),
    }
    if on_gpu := [row for row in timed if row.get("device") == "cuda"]:
        states["GPU timing"] = _gpu_timing(on_gpu)
    if copies := copies_of(rows, meta):
        states["devices"] = _devices(copies)
    return tuple(
        Badge(label=label, state=state, text=text) for label, (state, text) in states.items()
    )


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


def _counted(timed: list[Row], field: str, what: str) -> State:
    known = [row for row in timed if row.get(field) is not None and row.get("blocks")]
    if not known:
        return "unknown", f"It is not known whether {what}."
    some, blocks = sum(row[field] for row in known), sum(row["blocks"] for row in known)
    text = f"In {some or 'none'} of {plural(blocks, 'block')} {what}."
    silent = len(timed) - len(known)
    text += f" {plural(silent, 'case')} of {len(timed)} do not say." if silent else ""
    return "caution" if some else "unknown" if silent else "good", text


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
    if unsteady := found.count(False):
        return "caution", f"Call times were not stationary in {of_timed(unsteady, timed)}."
    if not timed:
        return NOTHING_TIMED
    if unknown := found.count(None):
        where = of_timed(unknown, timed)
        return "unknown", f"It is not known whether call times were stationary in {where}."
    return "good", "Call times were stationary before they were measured."


def _intervals(timed: list[Row], meta: Meta) -> State:
    if not timed:
        return NOTHING_TIMED
    requested = {ratio for run in meta.values() if (ratio := precision_ratio(run)) is not None}
    percents = " and ".join(f"{100 * ratio:g} %" for ratio in sorted(requested))
    goal = f" of ± {percents}" if percents else ""
    if short := sum(missed(row, precision_ratio(meta[row["run"]])) for row in timed):
        return "caution", f"{of_timed(short, timed)} missed the requested interval{goal}."
    if not all(row.get("stop") for row in timed):
        return "unknown", "The rows do not say why measuring ended."
    return "good", f"Every timed case reached the requested interval{goal}."


def _processes(timed: list[Row]) -> State:
    counts = [row["processes"] for row in timed if row.get("processes") is not None]
    if not counts:
        return "unknown", "The number of processes per case is not known."
    if min(counts) == 1:
        return "caution", "One process per case: no interval includes run-to-run variation."
    return "good", f"At least {min(counts)} processes measured each case."


def _correctness(rows: list[Row], timed: list[Row]) -> State:
    if wrong := sum(row["status"] == WRONG for row in rows):
        return "caution", f"{plural(wrong, 'case')} gave a wrong result and got no latency."
    if not timed:
        return NOTHING_TIMED
    exact = [row for row in timed if is_exact(row)]
    if unchecked := sum(row.get("error_ratio") is None for row in exact):
        return "unknown", f"{of_timed(unchecked, timed)} have no error on record."
    if not exact:
        return "unknown", "No timed case is exact attention."
    text = "Every timed {}case was first checked against a float64 reference{}."
    if len(exact) == len(timed):
        return "good", text.format("", "")
    exempt = f"; {of_timed(len(timed) - len(exact), timed)} claim no exact result"
    return "good", text.format("exact ", exempt)


def _gpu_timing(timed: list[Row]) -> State:
    """Whether events, the wall clock and CUDA graphs tell the same story."""
    flags = {
        "work that no event saw": "unseen_work",
        "calls begun before they were launched": "late_calls",
        "no CUDA graph": "graph_failed",
    }
    counts = {what: sum(bool(row.get(flag)) for row in timed) for what, flag in flags.items()}
    if any(counts.values()):
        found = (f"{what} in {count}" for what, count in counts.items() if count)
        return "caution", f"Of {plural(len(timed), 'timed case')}: {list_text(list(found))}."
    if any(row.get(flag) is None for row in timed for flag in flags.values()):
        return "unknown", "Not every case says whether events and wall clock agree."
    return "good", "Events and wall clock agree, and no CUDA graph failed."


def _devices(copies: list[Copies]) -> State:
    """Whether devices of one kind agree, of the copies that were measured on purpose."""
    text = " ".join(f"{finding(one)}." for one in copies)
    verdicts = {one.spread.verdict if one.spread else "undecided" for one in copies}
    if "differ" in verdicts:
        return "caution", text
    return "good" if verdicts == {"same"} else "unknown", text


def _all_on_cpu(timed: list[Row]) -> bool:
    return all(row.get("device") == "cpu" for row in timed)
