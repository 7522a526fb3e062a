"""How the kernels work, for readers who know no machine code, with their audit's numbers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from ..analysis.audited_kernels import (
    DTYPES,
    KERNELS,
    by_gpu,
    configuration,
    kernels,
    limit_text,
    short_name,
    versions,
)
from ..analysis.kernel_limits import (
    cycles_text,
    finding,
    findings,
    percent,
    pictured,
    specialized,
)
from ..analysis.kernel_order import backward
from ..analysis.kernel_step import UNITS, preference, step, why_no_step, with_another_block
from ..data.row_groups import Row
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import list_text
from . import _backward_lanes, _kernel_lanes, _kernel_tiles

TITLE = "How the kernel works"
ORDER = 48
NEEDS = ()
ABOUT = ("kernels",)
MOST_ROWS = 60
COLUMNS = (
    *("kernel, head", "configuration", "products", "exponentials", "instructions"),
    *("registers", "blocks on an SM", "busy at most", "one block more"),
)
TILES = (
    "Attention compares every query with every key: a matrix of scores that is too large to store."
    " So it is computed in tiles, rectangles of it. A block owns the queries of a few rows, and"
    " passes over the keys and values from left to right; each tile of keys is one step. Between"
    " steps it keeps only the running maximum, sum and output of each query (online softmax)."
)
TIME = (
    "In a step a block multiplies queries by keys (QKᵀ), takes exponentials of the scores"
    " (softmax) and multiplies the weights by values (PV), while copies bring the tiles of later"
    " steps into free buffers of shared memory. Products run on tensor cores and exponentials on a"
    " unit of their own, so two blocks on an SM can use both at once; one block alone leaves one of"
    " them idle."
)
SPECIALIZED = (
    "A warp-specialized kernel divides the work: one group of warps, the producer, only starts"
    " copies; the others, the consumers, only compute. Each consumer is a warpgroup, four warps"
    " that multiply together, and has queries of its own. So one consumer can multiply while the"
    " other takes exponentials (ping-pong), within one block."
)
BACKWARD = (
    "Backward is two kernels. A block of the one for dq owns queries, as forward does, and passes"
    " over keys and values; one for dk and dv owns keys and values, and passes over queries and the"
    " gradients dO of their outputs. Neither reads weights: both compute P again from Q, K and the"
    " log-sum-exp that forward stored, and from it dS, the gradient of the scores. So a step has"
    " three or four products for forward's two, with P and dS in between."
)
BOUND = (
    "Cycles are counted in the machine code for one warp on its quarter of an SM, and bounds follow"
    " from them: nothing here was run or timed. Waiting for memory and for barriers comes on top,"
    " so a real kernel is slower. docs/method.md has the model."
)


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = kernels(meta)
    gpus = list(by_gpu(rows).values())
    shown = [found for of_gpu in gpus if (found := pictured(of_gpu))]
    if not shown:
        yield from _without_forward(gpus)
        return
    drawn = max(shown, key=lambda found: sum(step(row) is not None for row in found))
    of_gpu = _of_gpu(gpus, drawn)
    others = specialized(of_gpu, drawn)
    yield note(TILES)
    yield from _pictures(drawn, others)
    for found in gpus:
        yield from (Text(text=f"{text}.") for text in findings(found))
    known = [(row, one) for row in others if (one := step(row)) is not None]
    yield from (Text(text=f"{finding(row, one)}.") for row, one in known)
    yield from _backward(of_gpu)
    if any(step(row) for found in shown for row in found):
        yield note(BOUND)
    yield from _lacking(shown)
    yield _table(gpus)


def _without_forward(gpus: Sequence[list[Row]]) -> Iterator[Block]:
    if known := next((of_gpu for of_gpu in gpus if backward(of_gpu)), None):
        yield from _backward(known)
        yield note(BOUND)
        yield _table(gpus)
    elif gpus:
        yield note("No forward kernel with known tiles was audited, and the others are not drawn.")
    else:
        yield note("No kernel was audited. attnbench kernels audit compiles and reads them.")


def _of_gpu(gpus: Iterable[list[Row]], drawn: list[Row]) -> list[Row]:
    """Those of the GPU that is drawn."""
    return next(rows for rows in gpus if drawn[0] in rows)


def _pictures(drawn: list[Row], others: list[Row]) -> Iterator[Block]:
    """The tiles of `drawn`; the time of these and of the `others`, by width."""
    about = f"forward kernel ({drawn[0]['dtype']}) for {short_name(drawn[0])} · {versions(drawn)}"
    timed = sorted([*drawn, *others], key=lambda row: row["d_k"])
    times = _kernel_lanes.picture(timed, about)
    if times is not None:
        yield note(TIME)
    if others:
        yield note(SPECIALIZED)
    places = _kernel_tiles.picture(drawn, about)
    yield from (one for one in (places, times) if one is not None)


def _backward(of_gpu: list[Row]) -> Iterator[Block]:
    rows = backward(of_gpu)
    if not rows:
        return
    about = f"backward kernels ({rows[0]['dtype']}) for {short_name(rows[0])} · {versions(rows)}"
    yield note(BACKWARD)
    yield from (one for one in (_backward_lanes.picture(rows, about),) if one is not None)
    yield from (Text(text=f"{finding(row, one)}.") for row in rows if (one := step(row)))


def _lacking(shown: Iterable[list[Row]]) -> Iterator[Block]:
    """Why the time of some kernels is not drawn: each reason once, with its GPUs."""
    reasons: dict[str, list[str]] = {}
    for row in (row for found in shown for row in found if step(row) is None):
        reasons.setdefault(why_no_step(row), []).append(short_name(row))
    for why, gpus in reasons.items():
        yield note(f"No time is drawn for {list_text(list(dict.fromkeys(gpus)))}: {why}.")


def _table(gpus: Sequence[list[Row]]) -> Table:
    """The first configuration of each kernel and width that was compiled, for every GPU."""
    several = len(gpus) > 1
    rows = [row for of_gpu in gpus for row in _first(of_gpu)][:MOST_ROWS]
    return Table(
        title=(
            "Cycles of a step by what they use, registers of a thread, blocks, and how busy"
            " the tensor cores can be"
        ),
        columns=("GPU", *COLUMNS) if several else COLUMNS,
        rows=tuple((short_name(row), *_cells(row)) if several else _cells(row) for row in rows),
    )


def _first(rows: list[Row]) -> list[Row]:
    """Of each kernel and width the row of the lowest rank, of the usual dtype."""
    dtypes = [name for name in DTYPES if any(row["dtype"] == name for row in rows)]
    of_dtype = [row for row in rows if not dtypes or row["dtype"] == dtypes[0]]
    best: dict[tuple[Any, ...], Row] = {}
    for row in sorted(of_dtype, key=preference):
        best.setdefault((row["kernel"], row["d_k"], row["d_v"]), row)
    place = {name: at for at, name in enumerate(KERNELS)}
    return sorted(best.values(), key=lambda row: (place.get(row["kernel"], len(place)), row["d_k"]))


def _cells(row: Row) -> tuple[str, ...]:
    one = step(row)
    cycles: tuple[str, ...] = ("", "", "")
    bounds = ("", "")
    if one is not None:
        taken, more = (one.tensor, one.exponentials, one.issue), with_another_block(one)
        cycles = tuple(map(cycles_text, taken))
        better = percent(more.busy_ratio) if more.busy_ratio > one.busy_ratio else ""
        bounds = f"{percent(one.busy_ratio)}, {UNITS.get(one.limit, one.limit)}", better
    width = row["d_k"] if row["d_k"] == row["d_v"] else f"{row['d_k']}/{row['d_v']}"
    blocks, limited = row.get("sm_block_count"), limit_text(row)
    return (
        f"{row['kernel']}, {width}",
        configuration(row["config"]),
        *cycles,
        str(row.get("thread_register_count") or ""),
        f"{blocks}: {limited}" if blocks and limited else str(blocks or ""),
        *bounds,
    )
