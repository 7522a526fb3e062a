"""Reasons to trust the latencies of a page, or not: one badge each. What nobody looked at is
unknown, never good.
"""

from collections.abc import Callable, Iterable, Iterator
from statistics import median

from ..data.run_meta import Meta
from ..data.exactness import is_exact
from ..data.row_groups import Row
from ..elements import Badge
from ..formatting import plural
from ..analysis.trust import missed, precision_ratio

CLOCK_SPREAD_RATIO = (
    0.05  # of the median clock: a latency follows its clock, and 5 % is what a quick run resolves
)
WRONG = "incorrect"


def badges(rows: list[Row], meta: Meta) -> tuple[Badge, ...]:
    timed = [row for row in rows if row.get("latency_ms") is not None]
    makers: tuple[Callable[[list[Row]], Badge], ...] = (
        _clocks,
        _throttling,
        _contention,
        _others,
        _warm_up,
    )
    said = [maker(timed) for maker in makers]
    return (*said, _intervals(timed, meta), _processes(timed), _gate(rows, timed))


def _clocks(timed: list[Row]) -> Badge:
    clocks = list(_readings(timed, "sm_clock_mhz"))
    if not clocks:
        why = (
            "On a CPU nothing reads them block by block."
            if _all_on_cpu(timed)
            else "No block has a reading."
        )
        return Badge(label="clocks", state="unknown", text=why)
    low, high = min(clocks), max(clocks)
    steady = high - low <= CLOCK_SPREAD_RATIO * median(clocks)
    return Badge(
        label="clocks",
        state="good" if steady else "caution",
        text=f"{low:.0f} to {high:.0f} MHz over all blocks.",
    )


def _readings(timed: Iterable[Row], name: str) -> Iterator[float]:
    for row in timed:
        for process in row.get("conditions") or []:
            yield from (block[name] for block in process if name in block)


def _throttling(timed: list[Row]) -> Badge:
    return _counted(
        timed,
        "throttled_blocks",
        "throttling",
        "the processor was held back by a quota, power or heat",
    )


def _contention(timed: list[Row]) -> Badge:
    return _counted(timed, "contended_blocks", "contention", "other work wanted the same cores")


def _counted(timed: list[Row], field: str, label: str, what: str) -> Badge:
    known = [row for row in timed if row.get(field) is not None and row.get("blocks")]
    if not known:
        return Badge(label=label, state="unknown", text=f"Nothing tells whether {what}.")
    some, blocks = sum(row[field] for row in known), sum(row["blocks"] for row in known)
    silent = (
        f" {plural(len(timed) - len(known), 'case')} of {len(timed)} do not say."
        if len(known) < len(timed)
        else ""
    )
    found = f"In {some or 'none'} of {plural(blocks, 'block')} {what}.{silent}"
    return Badge(
        label=label, state="caution" if some else "unknown" if silent else "good", text=found
    )


def _others(timed: list[Row]) -> Badge:
    counts = [
        window["other_process_count"]
        for row in timed
        for window in row.get("windows") or []
        if _is_count(window)
    ]
    label = "other processes"
    if not counts:
        why = (
            "A CPU is always shared; see contention."
            if _all_on_cpu(timed)
            else "Nobody looked, or the driver hides them."
        )
        return Badge(label=label, state="unknown", text=why)
    some = sum(count > 0 for count in counts)
    found = f"Others used the device in {some or 'none'} of {plural(len(counts), 'window')}."
    return Badge(label=label, state="caution" if some else "good", text=found)


def _is_count(window: dict[str, object]) -> bool:
    return type(window.get("other_process_count")) is int


def _warm_up(timed: list[Row]) -> Badge:
    known = [row for row in timed if row.get("warmup_stationary") is not None]
    if restless := sum(row["warmup_stationary"] is False for row in known):
        return Badge(
            label="warm-up",
            state="caution",
            text=f"Calls had not come to rest in {_of(restless, timed)}.",
        )
    if not timed:
        return Badge(label="warm-up", state="unknown", text="No case was timed.")
    if len(known) < len(timed):
        return Badge(
            label="warm-up",
            state="unknown",
            text=(
                f"In {_of(len(timed) - len(known), timed)} nobody can tell whether calls were at"
                " rest."
            ),
        )
    return Badge(
        label="warm-up", state="good", text="Calls had come to rest before they were timed."
    )


def _intervals(timed: list[Row], meta: Meta) -> Badge:
    if not timed:
        return Badge(label="precision", state="unknown", text="No case was timed.")
    wanted = sorted({ratio for run in meta.values() if (ratio := precision_ratio(run)) is not None})
    goal = f" of ± {' and '.join(f'{100 * ratio:g} %' for ratio in wanted)}" if wanted else ""
    if short := sum(missed(row, precision_ratio(meta[row["run"]])) for row in timed):
        return Badge(
            label="precision",
            state="caution",
            text=f"{_of(short, timed)} missed the wanted interval{goal}.",
        )
    if not all(row.get("stop") for row in timed):
        return Badge(
            label="precision", state="unknown", text="The rows do not say why measuring ended."
        )
    return Badge(
        label="precision", state="good", text=f"Every timed case reached the wanted interval{goal}."
    )


def _processes(timed: list[Row]) -> Badge:
    counts = [row["processes"] for row in timed if row.get("processes") is not None]
    if not counts:
        return Badge(
            label="repeats",
            state="unknown",
            text="How many processes measured a case is not known.",
        )
    if min(counts) == 1:
        return Badge(
            label="repeats",
            state="caution",
            text="One process per case: run-to-run variation is in no interval.",
        )
    return Badge(
        label="repeats", state="good", text=f"At least {min(counts)} processes measured each case."
    )


def _gate(rows: list[Row], timed: list[Row]) -> Badge:
    if wrong := sum(row["status"] == WRONG for row in rows):
        return Badge(
            label="correctness",
            state="caution",
            text=f"{plural(wrong, 'case')} gave a wrong result and got no latency.",
        )
    if not timed:
        return Badge(label="correctness", state="unknown", text="No case was timed.")
    exact = [row for row in timed if is_exact(row)]
    if unjudged := sum(row.get("error_ratio") is None for row in exact):
        return Badge(
            label="correctness",
            state="unknown",
            text=f"{_of(unjudged, timed)} have no error on record.",
        )
    if not exact:
        return Badge(label="correctness", state="unknown", text="No timed case is exact attention.")
    apart = (
        f"; {_of(len(timed) - len(exact), timed)} claim no exact result"
        if len(exact) < len(timed)
        else ""
    )
    return Badge(
        label="correctness",
        state="good",
        text=(
            f"Every timed {'exact ' if apart else ''}case first passed against a float64"
            f" reference{apart}."
        ),
    )


def _of(count: int, timed: list[Row]) -> str:
    return f"{count} of {plural(len(timed), 'timed case')}"


def _all_on_cpu(timed: list[Row]) -> bool:
    return all(row.get("device") == "cpu" for row in timed)
