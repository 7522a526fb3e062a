"""Which form of latent attention is faster, by the number of queries, and where FLOPs say so."""

from collections.abc import Sequence
from math import floor, sqrt

from ..data.polynomial import through
from ..data.row_groups import AXES, Row, by, is_timed, label, problem
from ..data.run_meta import Meta
from ..elements import note
from ..formatting import list_text
from ..quantity import Quantity
from . import Subject
from ._pairs import Crossover, Pair, axes_of, pair_table, pairs_of

TITLE = "Forms of latent attention"
SECTION = "asked"
ORDER = 18
ABSORBED, UNABSORBED = "absorbed", "unabsorbed"
OF_QUERIES = ("seq_len", "causal_align")
HOW = (
    "Absorbed: all heads read the latent, and projections move to queries and outputs. Unabsorbed:"
    " every head's keys and values are made first. N is the number of queries."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = comparisons(rows)
    if not found:
        return Subject(lacking="No latent cache was read in both forms.")
    axes = axes_of([some[0] for some in found], OF_QUERIES)
    more = {
        "queries": lambda one: Quantity(one.row["seq_len"], "length"),
        "FLOPs over absorbed": lambda one: Quantity(flops_ratio(one), "ratio"),
    }
    every = [one for some in found for one in some]
    title = "Forms of latent attention by the number of queries"
    table = pair_table(title, every, UNABSORBED, ABSORBED, more, OF_QUERIES)
    named = [(label(problem(some[0].row), axes), some) for some in found]
    lines = tuple(f"{finding(some)}{f' ({text})' if text else ''}." for text, some in named)
    return Subject(lines=lines, blocks=(note(HOW), table))


def comparisons(rows: Sequence[Row]) -> list[Sequence[Pair]]:
    """Unabsorbed over absorbed, by the number of queries: problems that differ in more apart."""
    timed = [row for row in rows if is_timed(row) and row.get("latent") and _form(row)]
    apart = [axis for axis in AXES if axis not in OF_QUERIES]
    on = [*apart, "seq_len"]
    forms = by({(_form(row), *map(row.get, on)): row for row in timed}.values(), _form)
    pairs = pairs_of(forms.get(UNABSORBED, ()), forms.get(ABSORBED, ()), on)
    found = sorted(pairs, key=lambda one: int(one.row["seq_len"]))
    return [*by(found, lambda one: (*map(one.row.get, apart),)).values()]


def finding(some: Sequence[Pair]) -> str:
    """`Expanding keys and values was shown to be faster than reading the latent at N = 64 and
    longer (slower up to 16): it takes 20 times (18 to 22) at N = 1 and 0.80 times (0.75 to 0.85) at
    N = 256 its time; fewer FLOPs above N = 167`.
    """
    first, last, even = some[0], some[-1], even_by_flops(some)
    turn = Crossover(
        ratios={one.row["seq_len"]: one.time for one in some},
        ignored=[one.row["seq_len"] for one in some if one.time.disturbed],
    )
    times = [f"{one.time.text} at N = {one.row['seq_len']}" for one in [first, last][: len(some)]]
    fewer = "" if even is None else f"; fewer FLOPs above N = {floor(even)}"
    return (
        "Expanding keys and values was shown to be faster than reading the latent"
        f" {turn.text('slower')}: it takes {list_text(times)} its time{fewer}"
    )


def even_by_flops(some: Sequence[Pair]) -> float | None:
    """The number of queries above which the unabsorbed form has fewer FLOPs; None if the counts do
    not say. Their difference is a quadratic polynomial, which falls from 0 queries on.
    """
    over = through({one.row["seq_len"]: _flops(one.row) - _flops(one.base) for one in some})
    if over is None or over.off or over.constant <= 0:
        return None
    a, b, c = map(float, (over.quadratic, over.linear, over.constant))
    if b >= 0 or b * b < 4 * a * c:
        return None
    return 2 * c / (sqrt(b * b - 4 * a * c) - b)


def _form(row: Row) -> str:
    """ "" of a backend that does not say both, or says something else."""
    said = row.get("configuration") or {}
    known = said.get("form") in (ABSORBED, UNABSORBED) and isinstance(said.get("form_flops"), int)
    return str(said["form"]) if known else ""


def _flops(row: Row) -> int:
    return int(row["configuration"]["form_flops"])


def flops_ratio(one: Pair) -> float:
    return _flops(one.row) / _flops(one.base)
