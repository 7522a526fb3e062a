"""What limits the trust in latencies: disturbed blocks, restless warm-ups, wide intervals, calls
that are bound by their launches.
"""

from collections.abc import Iterable, Mapping
from math import expm1
from typing import Any, Literal

from ..data.run_meta import Meta
from ..data.row_groups import Row, groups, label, problem, varying_axes
from ..formatting import list_text, number_text, plural

MOST_NAMED = 4
# How a disturbance is told: what happened, and what it was called in the row.
DISTURBANCES = {
    "contended_blocks": "other work wanted the same cores",
    "throttled_blocks": (
        "the processor was held back (a CPU quota, or a lower clock for power or heat)"
    ),
}
Disturbance = Literal["contended_blocks", "throttled_blocks"]


def cautions(rows: list[Row], meta: Meta) -> list[str]:
    """One sentence for each kind of trouble that some timed case had."""
    timed = _timed(rows)
    said = [
        _disturbed(timed, "contended_blocks"),
        _disturbed(timed, "throttled_blocks"),
        _restless(timed),
        _wide(timed, meta),
    ]
    return [sentence for sentence in (*said, _launch_bound(timed)) if sentence]


def warnings(rows: list[Row]) -> list[str]:
    """What nobody should overlook: cases of which most blocks were disturbed."""
    timed = _timed(rows)
    return [
        f"During more than half of the blocks of {_of(mostly, timed)} {what}: measure"
        f" {'it' if len(mostly) == 1 else 'them'} again."
        for field, what in DISTURBANCES.items()
        if (mostly := [row for row in timed if _mostly(row, field)])
    ]


def missed(row: Row, precision_ratio: float | None) -> bool:
    """Sampling ended by time or by the plan's most blocks, and the latency or a reported ratio of
    it is not as precise as wanted.
    """
    if row.get("stop") not in ("budget", "blocks"):
        return False
    return (
        precision_ratio is None
        or row.get("half_width_ratio") is None
        or max(_widths(row)) > precision_ratio
    )


def precision_ratio(run: Mapping[str, Any]) -> float | None:
    """What the plan wanted, where run.json says so."""
    plan = run["scenario"].get("plan")
    wanted = plan.get("precision_ratio") if isinstance(plan, dict) else None
    return wanted if isinstance(wanted, float | int) and not isinstance(wanted, bool) else None


def _timed(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.get("latency_ms") is not None]


def _disturbed(timed: list[Row], field: Disturbance) -> str:
    found = [row for row in timed if row.get(field)]
    if not found:
        return ""
    mostly = [row for row in found if _mostly(row, field)]
    worst = f"; during more than half of the blocks of {_named(mostly, timed)}" if mostly else ""
    return (
        f"In {_of(found, timed)} {DISTURBANCES[field]} during some of the blocks{worst}. Such"
        " blocks are kept, and may be too slow."
    )


def _mostly(row: Row, field: str) -> bool:
    return 2 * (row.get(field) or 0) > (row.get("blocks") or 0)


def _restless(timed: list[Row]) -> str:
    found = [row for row in timed if row.get("warmup_stationary") is False]
    if not found:
        return ""
    return (
        f"In {_of(found, timed)} the calls had not come to rest when the time for warming up was"
        f" over: {_named(found, timed)}."
    )


def _wide(timed: list[Row], meta: Meta) -> str:
    found = [row for row in timed if missed(row, precision_ratio(meta[row["run"]]))]
    if not found:
        return ""
    known = [row for row in found if _widths(row)]
    widest = max(known, key=lambda row: max(_widths(row)), default=None)
    how = (
        f"; the widest interval is ± {number_text(100 * expm1(max(_widths(widest))))} %"
        f" ({_named([widest], timed)})"
        if widest
        else ""
    )
    return (
        f"In {_of(found, timed)} measuring ended by time or by number of blocks before the wanted"
        f" precision was reached{how}."
    )


def _launch_bound(timed: list[Row]) -> str:
    found = [row for row in timed if row.get("launch_bound")]
    if not found:
        return ""
    return (
        f"In {_of(found, timed)} launching costs more than a tenth of the time:"
        f" {_named(found, timed)}. There a call and its wait take more than 1.1 times as long as"
        " the same work in a CUDA graph."
    )


def _widths(row: Row) -> list[float]:
    return [
        width
        for name in ("half_width_ratio", "pair_half_width_ratio")
        if (width := row.get(name)) is not None
    ]


def _of(found: list[Row], timed: list[Row]) -> str:
    return f"{len(found)} of {plural(len(timed), 'timed case')}"


def _named(found: list[Row], timed: Iterable[Row]) -> str:
    """Each case by its backend and by what tells the problems apart."""
    axes = varying_axes([group.problem for group in groups(timed, None)]) or ["seq_len"]
    said = [f"{row['backend']} at {label(problem(row), axes)}" for row in found[:MOST_NAMED]]
    return list_text(
        said + ([f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else [])
    )
