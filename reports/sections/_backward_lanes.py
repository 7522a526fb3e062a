"""Steps of the backward kernels over time, as lanes, in the order of their machine code."""

from collections.abc import Iterator, Sequence

from ..analysis.audited_kernels import configuration
from ..analysis.kernel_limits import cycles_text, percent
from ..analysis.kernel_order import Order, Run, order
from ..analysis.kernel_step import ITEM_BYTES, Step, buffer_count, count_of, step
from ..data.row_groups import Row
from ..elements import Lane, LaneChart, LanePanel, Look, Span, Table
from ..formatting import list_text, plural

PERIODS = 2  # steps of the slowest kernel that fit the chart
MOST_TEAMS, MOST_BUFFERS = 4, 4
GRADIENTS = {"grad_q": "dq", "grad_kv": "dk and dv"}
LOADED = {"grad_q": "K, V", "grad_kv": "Q, dO"}
LEGEND: tuple[tuple[Look, str], ...] = (
    ("product", "matrix products"),
    ("softmax", "P and dS"),
    ("load", "time for copies"),
    ("rest", "tiles in use"),
)
COLUMNS = ("head", "gradients", "a step lasts", "busy", "products", "cycles", "then", "cycles")


def picture(rows: Sequence[Row], about: str) -> LaneChart | None:
    """None if the order of none of these kernels is known."""
    known = [
        (row, one, found)
        for row in rows
        if (one := step(row)) is not None and (found := order(row)) is not None
    ]
    if not known:
        return None
    end = PERIODS * max(found.period for *_, found in known)
    return LaneChart(
        title=_title([(row, one) for row, one, _ in known]),
        caption=(
            f"{about} · cycles of one quarter of an SM, in the order of the machine code; blocks"
            " queue for the tensor cores, and waiting for memory is not in them"
        ),
        description=" ".join(_described(*one) for one in known),
        x_label="cycles",
        end=end,
        legend=LEGEND,
        panels=tuple(
            LanePanel(
                heading=(f"{GRADIENTS[row['kernel']]}, heads {row['d_k']} wide: {_who(one)}"),
                remark=configuration(row["config"]),
                lanes=tuple(_lanes(row, found, end)),
            )
            for row, one, found in known
        ),
        table=Table(
            title="The order of a step",
            columns=COLUMNS,
            rows=tuple(cells for row, _, found in known for cells in _cells(row, found)),
        ),
    )


def _title(known: Sequence[tuple[Row, Step]]) -> str:
    widths = dict.fromkeys(row["d_k"] for row, _ in known)
    busy = (
        list_text(
            [
                f"{percent(one.busy_ratio)} ({GRADIENTS[row['kernel']]})"
                for row, one in known
                if row["d_k"] == width
            ]
        )
        + f" for heads {width} wide"
        for width in widths
    )
    return f"Backward keeps tensor cores busy at most {', '.join(busy)}"


def _who(one: Step) -> str:
    return "one block" if one.blocks == 1 else f"{one.blocks} blocks side by side"


def _lanes(row: Row, found: Order, end: float) -> Iterator[Lane]:
    """Blocks, then the units, then the buffers of the first block."""
    several = len(found.teams) > 1
    shown = [[run for run in runs if run.end > 0 and run.start < end] for runs in found.teams]
    for number, runs in enumerate(shown[:MOST_TEAMS], 1):
        spans = tuple(_span(run) for run in runs)
        yield Lane(label=f"block {number}" if several else "block", spans=spans)
    every = [run for runs in shown for run in runs]
    products = [_span(run, label="") for run in every if run.unit == "product"]
    yield Lane(label="tensor cores", spans=tuple(products), note=percent(found.busy_ratio))
    yield Lane(
        label="exponentials",
        spans=tuple(
            Span(start=run.start, end=run.start + run.exponential_cycles, label="", look="softmax")
            for run in every
            if run.exponential_cycles
        ),
        note=percent(_exponentials(found) / found.period),
    )
    yield from _buffers(row, found.teams[0], end)


def _exponentials(found: Order) -> float:
    return len(found.teams) * sum(part.exponential_cycles for part in found.parts)


def _span(run: Run, label: str | None = None) -> Span:
    return Span(
        start=run.start, end=run.end, label=run.label if label is None else label, look=run.unit
    )


def _buffers(row: Row, runs: Sequence[Run], end: float) -> Iterator[Lane]:
    """Each holds a step's tiles until its last product, then waits for those of a later step."""
    count = min(_count(row), MOST_BUFFERS)
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for run in runs:
        if run.unit == "product":
            starts.setdefault(run.step, run.start)
            ends[run.step] = run.end
    for number in range(count if count > 1 else 0):
        spans = []
        for at, start in starts.items():
            due = starts.get(at + count)
            if at % count == number and due is not None and due > 0 and start < end:
                spans += [
                    Span(start=start, end=ends[at], label=_numbered("step", at + 1), look="rest"),
                    Span(
                        start=ends[at],
                        end=due,
                        label=_numbered("load", at + 1 + count),
                        look="load",
                    ),
                ]
        yield Lane(label=f"{LOADED[row['kernel']]} buffer {number + 1}", spans=tuple(spans))


def _count(row: Row) -> int:
    """Buffers of the tiles that a step loads: rows of keys or of queries, as wide as both heads."""
    name = "block_kv" if row["kernel"] == "grad_q" else "block_q"
    rows, item_bytes = count_of(row["config"], name), ITEM_BYTES.get(row["dtype"])
    widths = [count_of(row, width) for width in ("d_k", "d_v")]
    if rows is None or item_bytes is None or None in widths:
        return 0
    return buffer_count(row, rows * item_bytes * sum(width or 0 for width in widths))


def _numbered(word: str, number: int) -> str:
    """Steps before the first one, which reach into the chart, have no number."""
    return f"{word} {number}" if number > 0 else ""


def _order_text(found: Order) -> str:
    """`QKᵀ, dO Vᵀ 512, then P, dS 435, then dS K 256`."""
    pieces = []
    for part in found.parts:
        pieces.append(f"{part.products} {cycles_text(part.product_cycles)}")
        pieces.append(f"{part.code or 'other code'} {cycles_text(part.code_cycles)}")
    return ", then ".join(pieces)


def _cells(row: Row, found: Order) -> Iterator[tuple[str, ...]]:
    """A line for each part of a step; `busy` as drawn."""
    whole = cycles_text(found.period), percent(found.busy_ratio)
    for part in found.parts:
        yield (
            str(row["d_k"]),
            GRADIENTS[row["kernel"]],
            *whole,
            part.products,
            cycles_text(part.product_cycles),
            part.code or "other code",
            cycles_text(part.code_cycles),
        )


def _described(row: Row, one: Step, found: Order) -> str:
    return (
        f"{GRADIENTS[row['kernel']]}, heads {row['d_k']} wide,"
        f" {plural(one.blocks, 'block')} on an SM: a step of {cycles_text(found.period)} cycles has"
        f" {_order_text(found)}; the tensor cores are busy for {percent(found.busy_ratio)} of it."
    )
