"""A kernel's steps over time, as lanes: who does what in the period that its bound allows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from ..analysis.audited_kernels import configuration
from ..analysis.kernel_limits import cycles_text
from ..analysis.kernel_step import Step, buffers, step, tiles
from ..data.row_groups import Row
from ..elements import Lane, LaneChart, LanePanel, Look, Span, Table
from ..formatting import plural

PERIODS = 2  # steps of the slowest kernel that fit the chart
MOST_TEAMS, MOST_BUFFERS = 4, 4
LEGEND: tuple[tuple[Look, str], ...] = (
    ("product", "matrix products"),
    ("softmax", "softmax"),
    ("load", "time for copies"),
    ("rest", "tiles in use"),
)
COLUMNS = (
    "head",
    "kernel",
    "a step lasts",
    "QKᵀ and PV",
    "softmax",
    "exponentials in it",
    "in turns",
)


def picture(rows: Sequence[Row], about: str) -> LaneChart | None:
    """None if the cycles of none of these kernels are known."""
    known = [(row, one) for row in rows if (one := step(row)) is not None]
    if not known:
        return None
    end = PERIODS * max(one.period for _, one in known)
    most = {row["d_k"]: 0.0 for row, _ in known}
    for row, one in known:
        most[row["d_k"]] = max(most[row["d_k"]], one.busy_ratio)
    busy = " and ".join(f"{100 * ratio:.0f} %" for ratio in most.values())
    widths = " and ".join(map(str, most))
    return LaneChart(
        title=f"Tensor cores are busy at most {busy} of the time for heads {widths} wide",
        caption=(
            f"{about} · cycles of one quarter of an SM, from machine code; waiting for memory is"
            " not in them"
        ),
        description=" ".join(_described(row, one) for row, one in known),
        x_label="cycles",
        end=end,
        legend=LEGEND,
        panels=tuple(
            LanePanel(
                heading=f"Heads {row['d_k']} wide: {_who(one)}",
                remark=configuration(row["config"]),
                lanes=tuple(_lanes(row, one, end)),
            )
            for row, one in known
        ),
        table=Table(
            title="Cycles of a step",
            columns=COLUMNS,
            rows=tuple(_cells(row, one) for row, one in known),
        ),
    )


def _lanes(row: Row, one: Step, end: float) -> Iterator[Lane]:
    """Teams, offset so that they use the units evenly; then the units; then the buffers."""
    steps = range(-1 - MOST_BUFFERS, ceil(end / one.period) + 1)
    names = _team_names(one)
    offsets = [place * one.period / one.teams for place in range(one.teams)]
    last = offsets[one.block_teams - 1]  # of the first block's teams
    if one.is_specialized:
        yield Lane(label="producer", spans=tuple(_requests(row, one, steps, last)))
    works = [[_work(row, one, offset + at * one.period) for at in steps] for offset in offsets]
    for name, work in zip(names, works, strict=False):
        spans = tuple(span for spans in work for span in spans)
        if one.is_parallel:
            for look in ("product", "softmax"):
                of_look = tuple(span for span in spans if span.look == look)
                yield Lane(label=name if look == "product" else "", spans=of_look)
        else:
            yield Lane(label=name, spans=spans)
    every = [span for work in works for spans in work for span in spans]
    exponentials = one.team_warps * one.exponentials
    yield _unit("tensor cores", [one for one in every if one.look == "product"], one.busy_ratio)
    yield _unit(
        "exponentials",
        [replace(at, end=at.start + exponentials) for at in every if at.look == "softmax"],
        one.teams * exponentials / one.period,
    )
    yield from _buffers(row, one, steps, last)


def _who(one: Step) -> str:
    if one.is_specialized:
        return f"a producer and {plural(one.block_teams, 'consumer')}"
    return "one block" if one.blocks == 1 else f"{one.blocks} blocks side by side"


def _team_names(one: Step) -> list[str]:
    """At most MOST_TEAMS: the others do the same a little later."""
    blocks = [f"block {number + 1}" if one.blocks > 1 else "" for number in range(one.blocks)]
    if one.is_specialized:
        names = [
            f"consumer {number + 1}" + (f", {block}" if block else "")
            for block in blocks
            for number in range(one.block_teams)
        ]
    else:
        names = [block or "block" for block in blocks]
    return names[:MOST_TEAMS]


def _work(row: Row, one: Step, start: float) -> tuple[Span, ...]:
    """What a team does in the step that starts there.

    The next step's QK follows directly on PV, so what is left of the period lies before PV.
    """
    products = one.team_warps * one.tensor
    softmax = one.team_warps * one.softmax
    if one.is_parallel:
        return (
            Span(start=start, end=start + products, label="QKᵀ, PV", look="product"),
            Span(start=start, end=start + softmax, label="softmax", look="softmax"),
        )
    scores = products * row["d_k"] / (row["d_k"] + row["d_v"])
    end = start + one.period
    return (
        Span(start=start, end=start + scores, label="QKᵀ", look="product"),
        Span(start=start + scores, end=start + scores + softmax, label="softmax", look="softmax"),
        Span(start=end - (products - scores), end=end, label="PV", look="product"),
    )


def _unit(name: str, spans: Sequence[Span], ratio: float) -> Lane:
    unnamed = tuple(replace(span, label="") for span in spans)
    return Lane(label=name, spans=unnamed, note=f"{100 * ratio:.0f} %")


def _count(row: Row) -> int:
    of = tiles(row)
    return buffers(row, of) if of is not None else 0


def _requests(row: Row, one: Step, steps: range, last: float) -> Iterator[Span]:
    """The producer starts a copy whenever a buffer is free again."""
    count = max(_count(row), 1)
    for at in steps:
        free = (at + 1) * one.period + last
        yield Span(start=free, end=free + one.period, label=f"copy {at + 1 + count}", look="load")


def _buffers(row: Row, one: Step, steps: range, last: float) -> Iterator[Lane]:
    """Each holds a step's keys and values, then waits for those of `count` steps later."""
    count = min(_count(row), MOST_BUFFERS)
    for number in range(count if count > 1 else 0):
        spans = []
        for at in steps:
            if at % count == number:
                start, free = at * one.period, (at + 1) * one.period + last
                due = start + count * one.period
                spans.append(
                    Span(start=start, end=free, label=_numbered("step", at + 1), look="rest")
                )
                label = _numbered("load", at + 1 + count)
                spans.append(Span(start=free, end=due, label=label, look="load"))
        yield Lane(label=f"K, V buffer {number + 1}", spans=tuple(spans))


def _numbered(word: str, number: int) -> str:
    """Steps before the first one, which reach into the chart, have no number."""
    return f"{word} {number}" if number > 0 else ""


def _cells(row: Row, one: Step) -> tuple[str, ...]:
    times = (one.period, one.team_warps * one.tensor, one.team_warps * one.softmax)
    return (
        str(row["d_k"]),
        _who(one),
        *map(cycles_text, times),
        cycles_text(one.team_warps * one.exponentials),
        "no" if one.is_parallel else "yes",
    )


def _described(row: Row, one: Step) -> str:
    names = _team_names(one)
    who = f"{names[0]} of {one.teams}" if one.teams > 1 else f"the {names[0]}"
    products, softmax = (
        cycles_text(one.team_warps * cycles) for cycles in (one.tensor, one.softmax)
    )
    order = "beside" if one.is_parallel else "then"
    loads = _count(row)
    held = f" {loads} buffers of keys and values let copies run ahead." if loads > 1 else ""
    return (
        f"Heads {row['d_k']} wide: in a step of {cycles_text(one.period)} cycles, {who} has"
        f" {products} cycles of matrix products, {order} {softmax} of softmax; the tensor cores are"
        f" busy for {100 * one.busy_ratio:.0f} % of the time.{held}"
    )
