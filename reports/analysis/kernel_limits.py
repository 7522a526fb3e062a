"""Why the tensor cores cannot be busier, in sentences computed from the rows of audited kernels."""

from collections.abc import Iterable

from ..data.row_groups import Row
from ..formatting import plural
from .audited_kernels import limit_text, short_name
from .kernel_step import TURNS, UNITS, Step, step, widths, with_another_block

PICTURED = (64, 128)  # widths of a head, as in most models
MOST_PICTURED = 2


def pictured(rows: Iterable[Row]) -> list[Row]:
    """The forward kernels that explain a GPU: of the usual widths, or of those that there are."""
    by_width = widths(rows)
    usual = [row for width, row in by_width.items() if width in PICTURED]
    return (usual or list(by_width.values()))[:MOST_PICTURED]


def specialized(rows: Iterable[Row], like: Iterable[Row]) -> list[Row]:
    """For each of those kernels the same with warps for copies alone, if there is such a one."""
    known = [row for row in rows if (one := step(row)) is not None and one.is_specialized]
    same = ("kernel", "dtype", "d_k", "d_v", "causal", "masked")
    found = (
        next((row for row in known if all(row[name] == one[name] for name in same)), None)
        for one in like
    )
    return [row for row, one in zip(found, like, strict=True) if row is not None and row != one]


def findings(rows: Iterable[Row]) -> list[str]:
    """A sentence for each width on one GPU whose cycles are known, then one that compares them."""
    known = [(row, one) for row in pictured(rows) if (one := step(row)) is not None]
    said = [finding(row, one) for row, one in known]
    if len(known) == 2 and (contrast := _contrast(*known)):
        said.append(contrast)
    return said


def finding(row: Row, one: Step) -> str:
    """The bound, the cycles, why they do not overlap more, and what would change it."""
    who = "warp-specialized, " if one.is_specialized else ""
    kernel = "" if row["kernel"] == "forward" else f"{row['kernel']}, "
    bound = (
        f"{short_name(row)}, {kernel}{who}{width_text(row)}: the tensor cores are busy for at most"
    )
    cycles = (
        f"a step takes {cycles_text(one.tensor)} cycles of matrix products and"
        f" {cycles_text(one.exponentials)} of exponentials"
    )
    return f"{bound} {percent(one.busy_ratio)} of the time. {_capital(cycles)}{_why(row, one)}"


def _why(row: Row, one: Step) -> str:
    resources = _resources(row)
    if one.limit != TURNS:
        longest = UNITS.get(one.limit, one.limit)
        if one.limit == "tensor":
            return ", which fit beside the products"
        beyond = f", {cycles_text(one.issue)} in all" if one.limit == "issue" else ""
        return f"; what takes longest, the {longest}{beyond}, sets the pace"
    room = ""
    if resources:
        leave = "leave" if _is_plural(row) else "leaves"
        room = f", and {resources} {leave} room for {plural(one.blocks, 'block')} on an SM"
    return f", in turns{room}{_more(one)}"


def _more(one: Step) -> str:
    """What another block would change."""
    more = with_another_block(one)
    if more.busy_ratio <= one.busy_ratio:
        return ""
    limit = f", limited by {UNITS[more.limit]}" if more.limit in ("exponentials", "issue") else ""
    return f"; with one more it would be {percent(more.busy_ratio)}{limit}"


def _resources(row: Row) -> str:
    """Those that run out first: `registers (255 per thread) and shared memory`."""
    count = row.get("thread_register_count")
    limited = limit_text(row)
    return limited.replace("registers", f"registers ({count} per thread)") if count else limited


def _is_plural(row: Row) -> bool:
    limited = row.get("limited_by") or []
    return len(limited) > 1 or limited == ["registers"]


def _contrast(narrow: tuple[Row, Step], wide: tuple[Row, Step]) -> str:
    """Why exponentials weigh more for narrow heads: one per score, however wide the head."""
    shares = [one.exponentials / one.tensor for _, one in (narrow, wide)]
    if shares[0] <= shares[1]:
        return ""
    products = [row["d_k"] + row["d_v"] for row, _ in (narrow, wide)]
    return (
        f"Each score costs one exponential, but {products[0]} multiply-adds for"
        f" {width_text(narrow[0])} and {products[1]} for {width_text(wide[0])}: exponentials take"
        f" {percent(shares[0])} of the products' time in the one case and {percent(shares[1])} in"
        " the other"
    )


def width_text(row: Row) -> str:
    return f"heads {row['d_k']} wide"


def cycles_text(cycles: float) -> str:
    return f"{cycles:,.0f}"


def percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
