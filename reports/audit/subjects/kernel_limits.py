"""What keeps the tensor cores from being busier: the cycles of a kernel's loop, and what follows.

A step is an iteration of the loop, one tile of the side that it goes through.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ....harness.audit import tensor_bound
from ....harness.audit.tensor_bound import LIMITS, most_busy
from ....harness.files.printable import spaced
from ...data.row_groups import Row, by
from ...data.run_meta import Meta
from ...elements import Block, Card, Text, note, table_of
from ...formatting import list_text, percent_text, plural
from ...quantity import Cell, Number, Quantity
from ...subjects import Subject
from ..cells import configuration, head_text, limit_text
from ..kernels import by_gpu, first, kernels, short_name

TITLE = "What limits the kernels"
SECTION = "asked"
ORDER = 48
ABOUT = ("kernels",)
USUAL_WIDTHS = (64, 128)  # of a head, in most models of today
MOST_ROWS = 60
CYCLES = ("tensor", "exponential", "issue")
MODEL = (
    "Cycles are counted in the machine code for one warp on its quarter of an SM, and bounds follow"
    " from them: nothing here was run or timed. Waiting for memory and for barriers comes on top,"
    " so a real kernel is slower. docs/method.md has the model."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    gpus = list(by_gpu(kernels(meta)).values())
    if not gpus:
        return Subject(lacking="No kernel was audited. attnbench kernels audit does.")
    said = " ".join(f"{text}." for of_gpu in gpus for text in findings(of_gpu))
    card = Card(title=TITLE, sentence=said, picture=None, wide=True)
    return Subject(card=card if said else None, blocks=tuple(_blocks(gpus)))


class Bound(NamedTuple):
    """Cycles that one warp's step takes of its quarter of an SM, and the most that tensor cores
    are busy: with the blocks that an SM holds, and with one more.
    """

    tensor: float
    exponentials: float
    issue: float
    busy_ratio: float
    limit: str
    more_ratio: float
    more_limit: str


def bound(row: Row) -> Bound | None:
    """None without the cycles of its loop, or if no block fits an SM."""
    tensor, exponentials, issue = (row.get(f"loop_{name}_cycles") for name in CYCLES)
    warps, blocks = row.get("block_warp_count"), row.get("sm_block_count")
    if not tensor or exponentials is None or issue is None or not warps or not blocks:
        return None
    here, more = (
        most_busy(row, warps, count, row["config"].get("warps")) for count in (blocks, blocks + 1)
    )
    return Bound(tensor, exponentials, issue, *here, *more)


def why_no_bound(row: Row) -> str:
    if row["status"] != "ok":
        return f"it was not compiled ({row.get('reason') or row['status']})"
    if row.get("sm_block_count") == 0:
        return "no block of it fits an SM"
    mix = row.get("instructions") or {}
    others = [name for name in ("HMMA", "UTCHMMA") if mix.get(name)]
    if others and not mix.get("HGMMA"):
        return f"the audit knows the cycles of HGMMA only, and its matrix products are {others[0]}"
    if mix.get("HGMMA"):
        return "the audit was made before it counted cycles, or could not; audit again"
    return "its machine code has no matrix products, or was not read"


def of_usual_widths(rows: Sequence[Row]) -> list[Row]:
    """The first kernels of heads as wide as in most models, or of any."""
    known = first(rows, causal=False)
    return [row for row in known if row["d_k"] in USUAL_WIDTHS] or known


def specialized(rows: Iterable[Row], like: Iterable[Row]) -> Iterator[Row]:
    """For each of those kernels the same with warps for copies alone, if there is such a one."""
    known = [row for row in rows if bound(row) is not None and _is_specialized(row)]
    same = ("kernel", "dtype", "d_k", "d_v", "causal", "masked")
    for one in like:
        found = (row for row in known if all(row[name] == one[name] for name in same))
        if (row := next(found, None)) is not None and row != one:
            yield row


def _is_specialized(row: Row) -> bool:
    return tensor_bound.is_specialized(row["block_warp_count"], row["config"].get("warps"))


def findings(rows: Sequence[Row]) -> Iterator[str]:
    """Of one GPU: a sentence for each forward kernel of usual width, and one that compares them."""
    forward = [row for row in of_usual_widths(rows) if row["kernel"] == "forward"]
    known = [(row, one) for row in forward if (one := bound(row)) is not None]
    yield from (finding(row, one) for row, one in known)
    if len(known) == 2:
        yield from _contrast(known)


def finding(row: Row, one: Bound) -> str:
    """The bound, the cycles, why they do not overlap more, and what would change it."""
    kernel = "" if row["kernel"] == "forward" else f"{row['kernel']}, "
    who = "warp-specialized, " if _is_specialized(row) else ""
    return (
        f"{short_name(row)}, {kernel}{who}heads {row['d_k']} wide: the tensor cores are busy for at"
        f" most {percent_text(one.busy_ratio)} of the time. A step takes {spaced(one.tensor)}"
        f" cycles of matrix products and {spaced(one.exponentials)} of exponentials{_why(row, one)}"
    )


def _why(row: Row, one: Bound) -> str:
    if one.limit == "tensor":
        return ", which fit beside the products"
    if one.limit != "turns":
        beyond = f", {spaced(one.issue)} in all" if one.limit == "issue" else ""
        return f"; what takes longest, the {LIMITS[one.limit]}{beyond}, sets the pace"
    limited = row.get("limited_by") or []
    room = ""
    if limited:
        per_thread = f"registers ({row.get('thread_register_count')} per thread)"
        resources = limit_text(row).replace("registers", per_thread)
        leave = "leave" if len(limited) > 1 or limited == ["registers"] else "leaves"
        held = plural(row["sm_block_count"], "block")
        room = f", and {resources} {leave} room for {held} on an SM"
    more = ""
    if one.more_ratio > one.busy_ratio:
        more = f"; with one more it would be {percent_text(one.more_ratio)}"
        if one.more_limit in ("exponentials", "issue"):
            more += f", limited by {LIMITS[one.more_limit]}"
    return f", in turns{room}{more}"


def _contrast(known: Sequence[tuple[Row, Bound]]) -> Iterator[str]:
    """Why exponentials weigh more for narrow heads: one per score, however wide the head."""
    shares = [one.exponentials / one.tensor for _, one in known]
    (narrow, wide) = (row["d_k"] for row, _ in known)
    products = [row["d_k"] + row["d_v"] for row, _ in known]
    if shares[0] > shares[1]:
        yield (
            f"Each score costs one exponential, but {products[0]} multiply-adds for heads {narrow}"
            f" wide and {products[1]} for heads {wide} wide: exponentials take"
            f" {percent_text(shares[0])} of the products' time in the one case and"
            f" {percent_text(shares[1])} in the other"
        )


def _blocks(gpus: Sequence[Sequence[Row]]) -> Iterator[Block]:
    for rows in gpus:
        usual = of_usual_widths(rows)
        others = [row for row in usual if row["kernel"] != "forward"]
        for row in (*specialized(rows, usual), *others):
            if (one := bound(row)) is not None:
                yield Text(text=f"{finding(row, one)}.")
    shown = [row for rows in gpus for row in first(rows, causal=False)]
    if any(map(bound, shown)):
        yield note(MODEL)
    unknown = (row for row in shown if row["kernel"] == "forward" and bound(row) is None)
    for why, some in by(unknown, why_no_bound).items():
        names = list(dict.fromkeys(map(short_name, some)))
        yield note(f"No bound is known for {list_text(names)}: {why}.")
    yield table_of(
        "Cycles of a step by what they use, registers of a thread, blocks, and how busy"
        " the tensor cores can be",
        [(row, bound(row)) for row in shown[:MOST_ROWS]],
        COLUMNS,
    )


def _held(row: Row) -> str:
    """`1: registers`: blocks on an SM, and why no more."""
    held, limited = row.get("sm_block_count"), limit_text(row)
    return f"{held}: {limited}" if held and limited else str(held or "")


def _cycles(count: float) -> Number:
    return Number(spaced(count))


COLUMNS: dict[str, Callable[[tuple[Row, Bound | None]], Cell]] = {
    "GPU": lambda of: short_name(of[0]),
    "kernel, head": lambda of: f"{of[0]['kernel']}, {head_text(of[0])}",
    "configuration": lambda of: configuration(of[0]["config"]),
    "products": lambda of: _cycles(of[1].tensor) if of[1] else "",
    "exponentials": lambda of: _cycles(of[1].exponentials) if of[1] else "",
    "instructions": lambda of: _cycles(of[1].issue) if of[1] else "",
    "registers": lambda of: of[0].get("thread_register_count") or "",
    "blocks on an SM": lambda of: _held(of[0]),
    "busy at most": lambda of: (
        f"{percent_text(of[1].busy_ratio)}, {LIMITS[of[1].limit]}" if of[1] else ""
    ),
    "one block more": lambda of: (
        Quantity(of[1].more_ratio, "share") if of[1] and of[1].more_ratio > of[1].busy_ratio else ""
    ),
}
