"""What limits the trust in latencies: disturbances, warm-up, precision, launch costs."""

from collections.abc import Callable, Iterable
from math import expm1
from typing import Any

from ..data.noise_floor import DISTURBED_RATIO, percent_text, share_text
from ..data.peaks import places
from ..data.row_groups import Row, distinguishing_axes, label, problem
from ..data.run_meta import Meta, plan_of
from ..formatting import beyond_whole, list_text, number_text, plural
from ..ratio import disturbed, in_most, of_one_process

MOST_NAMED = 4
DISTURBANCES = {  # column: what happened
    "contended_blocks": "other work competed for the same cores",
    "throttled_blocks": (
        "the processor was throttled (a CPU quota, or a lower clock for power or heat)"
    ),
}


def timed_rows(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.get("latency_ms") is not None]


RULES: tuple[tuple[Callable[[Row], Any], str], ...] = (
    (
        lambda row: row.get("warmup_stationary") is False,
        "In {timed} call times were not stationary when the warm-up ended: {cases}.",
    ),
    (
        lambda row: row.get("launch_bound"),
        "In {timed} launching costs more than a tenth of the time: {cases}. There a call and its"
        " wait take more than 1.1 times as long as the same work in a CUDA graph.",
    ),
    (
        lambda row: row.get("unseen_work"),
        "In {timed} the wall clock saw much more than launching and the time between the events:"
        " {cases}. Work may have run on another stream or after the last event; the latency is then"
        " too short.",
    ),
    (
        lambda row: row.get("late_calls"),
        "In {timed} the GPU began {calls} before the host had launched all of it: {cases}. Launch"
        " gaps may be in their time.",
    ),
    (
        lambda row: row.get("graph_failed"),
        "{timed} could not be captured as a CUDA graph, so their launch costs are not known:"
        " {cases} ({reason}).",
    ),
)
"""What a timed case had, and what that means. `calls`: that the GPU began too early."""


def cautions(rows: list[Row], meta: Meta) -> list[str]:
    """One sentence per kind of problem that some timed case had."""
    timed = timed_rows(rows)
    sentences = [_disturbed(timed, field) for field in DISTURBANCES]
    for is_so, text in RULES:
        if found := list(filter(is_so, timed)):
            reasons = [row["graph_reason"] for row in found if row.get("graph_reason")]
            calls = plural(sum(row.get("late_calls") or 0 for row in found), "call")
            sentences.append(
                text.format(
                    timed=of_timed(len(found), timed),
                    cases=_named(found, timed),
                    calls=calls,
                    reason=next(iter(reasons), ""),
                )
            )
    sentences += [_wide(timed, meta), _faster_than_limits(timed, meta)]
    return [sentence for sentence in sentences if sentence]


def process_notes(rows: list[Row]) -> list[str]:
    """What verdicts on cases of one process allow for, which their rows cannot show."""
    single = [row for row in timed_rows(rows) if of_one_process(row)]
    known = {
        (ratio, str(row.get("process_noise_source")))
        for row in single
        if (ratio := row.get("process_noise_ratio")) is not None
    }
    how = {
        "selfcheck": "as attnbench selfcheck found",
        "rows": "as the rows of several processes show",
        "assumed": "which is assumed: attnbench selfcheck measures it",
    }
    return [
        f"One process cannot show how much processes differ: verdicts on ratios of such cases allow"
        f" for {share_text(ratio, source)}, {how.get(source, source)}"
        f"{_more_if_disturbed(ratio, single)}."
        for ratio, source in sorted(known)
    ]


def _more_if_disturbed(ratio: float, single: list[Row]) -> str:
    if ratio >= DISTURBED_RATIO or not any(map(disturbed, single)):
        return ""
    return f"; where other work disturbed one of the two, for {percent_text(DISTURBED_RATIO)}"


def warnings(rows: list[Row]) -> list[str]:
    """Cases with mostly disturbed blocks, which should be measured again."""
    timed = timed_rows(rows)
    return [
        f"During more than half of the blocks of {of_timed(len(mostly), timed)} {what}: measure"
        f" {'it' if len(mostly) == 1 else 'them'} again."
        for field, what in DISTURBANCES.items()
        if (mostly := [row for row in timed if in_most(row.get(field), row.get("blocks"))])
    ]


def missed(row: Row, precision_ratio: float | None) -> bool:
    """Sampling ended before the requested precision of the latency and of its reported ratio.

    It ended by time, or by the most blocks of the plan.
    """
    if row.get("stop") not in ("budget", "blocks"):
        return False
    return (
        precision_ratio is None
        or row.get("half_width_ratio") is None
        or max(_widths(row)) > precision_ratio
    )


def precision_ratio(run: Any) -> float | None:
    """The precision that the plan requested, if run.json has it."""
    requested = plan_of(run).get("precision_ratio")
    return requested if type(requested) in (int, float) else None


def of_timed(count: int, timed: list[Row]) -> str:
    """`2 of 30 timed cases`."""
    return f"{count} of {plural(len(timed), 'timed case')}"


def _disturbed(timed: list[Row], field: str) -> str:
    found = [row for row in timed if row.get(field)]
    if not found:
        return ""
    mostly = [row for row in found if in_most(row.get(field), row.get("blocks"))]
    worst = f"; during more than half of the blocks of {_named(mostly, timed)}" if mostly else ""
    return (
        f"In {of_timed(len(found), timed)} {DISTURBANCES[field]} during some of the blocks{worst}."
        " Such blocks are kept, and may be too slow."
    )


def _wide(timed: list[Row], meta: Meta) -> str:
    found = [row for row in timed if missed(row, precision_ratio(meta[row["run"]]))]
    if not found:
        return ""
    how = ""
    if known := [row for row in found if _widths(row)]:
        widest = max(known, key=lambda row: max(_widths(row)))
        percent = number_text(100 * expm1(max(_widths(widest))))
        how = f"; the widest interval is ± {percent} % ({_named([widest], timed)})"
    return (
        f"In {of_timed(len(found), timed)} measuring ended by time or by number of blocks before"
        f" the requested precision{how}."
    )


def _faster_than_limits(timed: list[Row], meta: Meta) -> str:
    """More FLOP/s than calibration measured: rows of earlier versions, or peaks that were too low.

    A run refutes what is beyond the device's limits itself, but those are generous.
    """
    found = [
        place.row
        for place in places(timed, meta)
        if place.peaks and beyond_whole(place.achieved_flops_per_s.value / place.peaks.flops_per_s)
    ]
    if not found:
        return ""
    return (
        f"In {of_timed(len(found), timed)} more FLOP/s were achieved than calibration measured as"
        f" the peak, which is impossible: {_named(found, timed)}. Either the work was not done, or"
        " the peak was measured on a busy or slower device; calibrate again."
    )


def interpreted(rows: list[Row], meta: Meta) -> list[str]:
    """Triton's interpreter does in Python what a kernel does; attnbench's own kernels refuse it."""
    names = {row["run"] for row in timed_rows(rows)}
    facts = [meta[name].get("environment") or {} for name in names]
    if not any((one.get("allocator") or {}).get("TRITON_INTERPRET") == "1" for one in facts):
        return []
    return [
        "TRITON_INTERPRET=1 was set: Triton kernels ran in Python's interpreter, whose results can"
        " be checked, but whose times say nothing about the kernels."
    ]


def _widths(row: Row) -> list[float]:
    names = ("half_width_ratio", "pair_half_width_ratio")
    return [width for name in names if (width := row.get(name)) is not None]


def _named(found: list[Row], timed: Iterable[Row]) -> str:
    """Each case by its backend and the axes that vary."""
    axes = distinguishing_axes(timed)
    texts = [f"{row['backend']} at {label(problem(row), axes)}" for row in found[:MOST_NAMED]]
    more = [f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    return list_text(texts + more)
