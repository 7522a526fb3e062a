"""Where something else beats dense exact attention: sparse, approximate or recurrent backends."""

from collections.abc import Sequence
from typing import NamedTuple

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, axis_text, backends, groups, is_timed
from ..data.run_meta import Meta
from ..elements import Card, table_of
from ..formatting import list_text, more_below, paragraph, rough_percent_text
from ..judging.pair import time_ratio
from . import Subject
from ._over import MOST_PANELS, challenges, joined, latencies
from ._pairs import Crossover, start_text
from .approximate import informative, method

TITLE = "Faster than dense attention"
SECTION = "asked"
ORDER = 17
BELOW_CLAIMS = True
MOST_TOLD = 6  # in one sentence; of more, those of the last problem
COMPARED = ("fused", "sdpa")  # exact backends to compare with if they were timed, else all


class Challenger(NamedTuple):
    """A backend on one problem over N; `crossovers`: by the dense exact backend that it is compared
    with.
    """

    group: Group
    backend: str
    crossovers: dict[str, Crossover]

    @property
    def is_faster(self) -> bool:
        return all(one.start is not None for one in self.crossovers.values())

    @property
    def last(self) -> Row:
        return next(row for row in reversed(self.group.of_backend(self.backend)) if is_timed(row))

    @property
    def error(self) -> float:
        return float(self.last.get("error_l2_ratio") or 0)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = challenged(rows)
    over_n = [(group, every) for group, every in found if len(group.lengths) > 1]
    lines = [f"{group.prefixed(finding(every))}." for group, every in found]
    if not over_n:
        return Subject(
            lines=tuple(lines),
            lacking="No sparse, approximate or recurrent backend was timed beside a dense one.",
        )
    shown = over_n[:MOST_PANELS]
    told = shown if sum(len(every) for _, every in shown) <= MOST_TOLD else shown[-1:]
    title = joined([(group, finding(every)) for group, every in told])
    table = table_of(
        "Where a backend is clearly faster than dense exact attention",
        [(of, *pair) for _, every in over_n for of in every for pair in of.crossovers.items()],
        {
            "problem": lambda line: line[0].group.label,
            "backend": lambda line: line[0].backend,
            "than": lambda line: line[1],
            "faster": lambda line: line[2].text("slower"),
        },
        optional=("problem",),
    )
    card = Card(
        title=TITLE,
        sentence=f"{title}.",
        picture=latencies([group for group, _ in shown], title, meta, table=table),
        subtitle="latency over N",
        note=paragraph(
            "Faster means by more than noise, at every longer N that was measured.",
            more_below(len(over_n) - len(shown)),
        ),
    )
    return Subject(card=card, blocks=(table,) if len(over_n) > len(shown) else ())


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
        every = []
        for name in others:
            known = {one: of for one in compared if (of := crossover(group.rows, name, one))}
            every += [Challenger(group, name, known)] if known else []
        found += [(group, every)] if every else []
    return found


def crossover(rows: Sequence[Row], backend: str, against: str) -> Crossover | None:
    """Where one is faster, among the rows of one problem over N; None if the two have no timed
    length in common.
    """
    ours, theirs = (
        {row["seq_len"]: row for row in rows if row["backend"] == name}
        for name in (backend, against)
    )
    pairs = {n: time_ratio(ours[n], theirs[n]) for n in sorted(ours.keys() & theirs.keys())}
    ratios = {n: ratio for n, ratio in pairs.items() if ratio is not None}
    return Crossover(ratios=ratios) if ratios else None


# ---- in a sentence -------------------------------------------------------------------------------


def finding(every: Sequence[Challenger]) -> str:
    """`sparse_local is faster than sdpa at N = 2 048 and longer; linformer is ...`. Of settings of
    one approximation the one with the smallest error, of those that are faster than all if any.
    """
    first: dict[str, Challenger] = {}
    for one in sorted(every, key=lambda one: (not one.is_faster, one.error)):
        first.setdefault(method(one.backend), one)
    return "; ".join(_finding(one) for one in every if one in first.values())


def _finding(of: Challenger) -> str:
    same: dict[str, list[str]] = {}
    for against, one in of.crossovers.items():
        same.setdefault(f"{_verdict(one)}", []).append(against)
    text = ", ".join(clause.format(list_text(names)) for clause, names in same.items())
    error = f"{rough_percent_text(of.error)} at {axis_text('seq_len', of.last['seq_len'])}"
    error = f" (error {error})" if not is_exact(of.last) and of.error else ""
    return f"{of.backend} is {text}{error}"


def _verdict(one: Crossover) -> str:
    """With a place for the name of the other backend."""
    if one.holds_at:
        where = one.text("slower") if one.start is None else start_text(one.start, one.lengths)
        return f"faster than {{}} {where}"
    if one.fails_at == one.lengths:
        return f"slower than {{}} {start_text(one.lengths[0], one.lengths)}"
    return f"not clearly faster than {{}} up to {axis_text('seq_len', one.lengths[-1])}"
