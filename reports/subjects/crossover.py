"""From which N on something else beats dense exact attention: sparse, approximate or recurrent."""

from collections.abc import Sequence
from typing import NamedTuple

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, axis_text, backends, groups, is_timed
from ..data.run_meta import Meta
from ..elements import Card, Figure, table_of
from ..formatting import count_text, list_text, more_below, paragraph, rough_percent_text
from . import Subject
from ._crossovers import Crossover, crossover, fewer_bytes_from, from_text
from ._over import MOST_PANELS, challenges, joined, latencies
from .approximate import informative, method
from .recurrence import even_by_flops

TITLE = "From which N on"
SECTION = "asked"
ORDER = 17
BELOW_CLAIMS = True
MOST_TOLD = 6  # in one sentence; of more, those of the last problem
COMPARED = ("fused", "sdpa")  # exact backends to compare with if they were timed, else all


class Challenger(NamedTuple):
    """A backend on one problem over N; `crossovers`: by the dense exact backend that it is compared
    with. `even_by_flops`: the N above which a recurrent layer does fewer FLOPs.
    """

    group: Group
    backend: str
    crossovers: dict[str, Crossover]
    even_by_flops: float | None

    @classmethod
    def of(cls, group: Group, name: str, others: Sequence[str]) -> "Challenger":
        pairs = ((other, crossover(group.rows, name, other)) for other in others)
        known = {other: one for other, one in pairs if one is not None}
        return cls(group, name, known, even_by_flops(group, name))


Found = Sequence[tuple[Group, list[Challenger]]]


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = challenged(rows)
    over_n = [(group, every) for group, every in found if len(group.lengths) > 1]
    pictures = [
        _figure(over_n[at : at + MOST_PANELS], meta) for at in range(0, len(over_n), MOST_PANELS)
    ]
    return Subject(
        card=_card(over_n, pictures[0]) if pictures else None,
        lines=tuple(
            f"{group.prefixed(finding(every))}."
            for group, every in found
            if len(group.lengths) == 1
        ),
        blocks=tuple(pictures[1:]),
        lacking="No sparse, approximate or recurrent backend was timed beside a dense one.",
    )


def challenged(rows: Sequence[Row]) -> list[tuple[Group, list[Challenger]]]:
    """Every problem over N with something timed beside dense exact attention. An approximation
    whose output carries no information has no part in it: its time is no trade for anything.
    """
    found = []
    for group in map(informative, groups(rows, "seq_len")):
        timed = [row for row in group.rows if is_timed(row)]
        others = backends(filter(challenges, timed))
        dense = [name for name in backends(timed) if name not in others]
        compared = [name for name in dense if name in COMPARED] or dense
        every = [Challenger.of(group, name, compared) for name in others]
        if some := [one for one in every if one.crossovers]:
            found.append((group, some))
    return found


def _card(over_n: Found, picture: Figure) -> Card:
    shown = over_n[: len(picture.panels)]
    return Card(
        title=TITLE,
        sentence=f"{picture.title}.",
        picture=picture,
        subtitle="latency over N",
        note=paragraph(
            "Faster means by more than noise, at every longer N that was measured.",
            more_below(len(over_n) - len(shown)),
        ),
    )


def _figure(shown: Found, meta: Meta) -> Figure:
    table = table_of(
        "From which N on a backend is clearly faster than dense exact attention",
        [(of, *pair) for _, every in shown for of in every for pair in of.crossovers.items()],
        {
            "problem": lambda line: line[0].group.label or "all",
            "backend": lambda line: line[0].backend,
            "than": lambda line: line[1],
            "faster": lambda line: line[2].text("slower", "even"),
            "fewer FLOPs": lambda line: _flops_text(line[0].even_by_flops),
        },
        optional=("fewer FLOPs",),
    )
    told = shown if sum(len(every) for _, every in shown) <= MOST_TOLD else shown[-1:]
    title = joined([(group, finding(every)) for group, every in told])
    return latencies([group for group, _ in shown], title, meta, table=table)


def _flops_text(even: float | None) -> str:
    if even is None:
        return ""
    return f"above N = {count_text(round(even))}" if even else "at every N"


def finding(every: Sequence[Challenger]) -> str:
    """`sparse_local is faster than sdpa from N = 2k on, fewer bytes from N = 512 on; linformer is
    ...`. Of settings of one approximation the one with the smallest error, of those that are faster
    than all if there are some.
    """
    first: dict[str, Challenger] = {}
    for one in sorted(every, key=lambda one: (not _is_faster(one), _error(one))):
        first.setdefault(method(one.backend), one)
    return "; ".join(_finding(one) for one in every if one in first.values())


def _is_faster(of: Challenger) -> bool:
    return all(one.start is not None for one in of.crossovers.values())


def _last(of: Challenger) -> Row:
    return next(row for row in reversed(of.group.of_backend(of.backend)) if is_timed(row))


def _error(of: Challenger) -> float:
    return float(_last(of).get("error_l2_ratio") or 0)


def _finding(of: Challenger) -> str:
    same: dict[str, list[str]] = {}
    for against, one in of.crossovers.items():
        same.setdefault(f"{_verdict(one)}{_fewer_bytes(of, against)}", []).append(against)
    text = ", ".join(clause.format(list_text(names)) for clause, names in same.items())
    row, even = _last(of), of.even_by_flops
    error = f"{rough_percent_text(_error(of))} at {axis_text('seq_len', row['seq_len'])}"
    error = f" (error {error})" if not is_exact(row) and _error(of) else ""
    fewer = "" if even is None else f"; it does fewer FLOPs {_flops_text(even)}"
    return f"{of.backend} is {text}{error}{fewer}"


def _verdict(one: Crossover) -> str:
    """With a place for the name of the other backend."""
    first, last = one.lengths[0], axis_text("seq_len", one.lengths[-1])
    if one.holds_at:
        return f"faster than {{}} {one.where}"
    if one.fails_at != one.lengths:
        return f"not clearly faster than {{}} up to {last}"
    every = f"every N from {count_text(first)} to {count_text(one.lengths[-1])}"
    return f"slower than {{}} at {every if len(one.lengths) > 1 else last}"


def _fewer_bytes(of: Challenger, against: str) -> str:
    """`, fewer bytes from N = 512 on`, of exact attention."""
    start, known = fewer_bytes_from(of.group.rows, of.backend, against)
    if not known or not is_exact(_last(of)):
        return ""
    if start is None:
        return f", not fewer bytes up to {axis_text('seq_len', known[-1])}"
    return f", fewer bytes {from_text(start, known, axis_text('seq_len', start))}"
