"""Which exact backend is fastest on one problem, and whether that is decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from ..data.beside import worker_of
from ..data.exactness import is_exact
from ..data.processor_time import told_time
from ..data.row_groups import Group, Row, by, groups, is_timed, once
from ..data.run_meta import OUT_OF_MEMORY
from ..formatting import capital, number_text
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..words import CONFIRMED, NOISY, SAME, SEEN, Mark
from ._over import n_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The timed exact rows of one problem, fastest first.

    `margins`: the times of the others over that of the first. `inexact`: the other timed rows,
    fastest first. An approximation is not ranked.
    """

    ranking: list[Row]
    margins: list[Ratio]
    inexact: list[Row]

    @property
    def pairs(self) -> list[tuple[Row, Ratio]]:
        """The others, with their margins."""
        return list(zip(self.ranking[1:], self.margins, strict=True))

    @property
    def close(self) -> list[tuple[Row, Ratio]]:
        """Those that are not confirmed to be slower; first what keeps the race open."""
        found = [pair for pair in self.pairs if pair[1].word != "more"]
        return sorted(found, key=lambda pair: pair[1].is_decided)

    @property
    def clear(self) -> bool:
        """The first is faster than every other by more than noise."""
        return bool(self.margins) and not self.close

    @property
    def tied(self) -> list[Row]:
        """The first and those that were shown to take as long, if all that are close were."""
        is_tie = bool(self.close) and all(margin.word == "same" for _, margin in self.close)
        return [self.ranking[0], *(row for row, _ in self.close)] if is_tie else []

    @property
    def mark(self) -> Mark:
        """How sure it is who is fastest, or that those that are close are the same."""
        if self.clear:
            return CONFIRMED
        marks = {margin.mark for _, margin in self.close}
        return next(mark for mark in (NOISY, SEEN, SAME, CONFIRMED) if mark in marks)

    @property
    def rival(self) -> tuple[Row, Ratio]:
        """The next one, or the first of those that are close."""
        return self.close[0] if self.close else self.pairs[0]


def race(rows: Sequence[Row]) -> Race:
    return once(rows, "race", lambda: _race(rows))


def _race(rows: Sequence[Row]) -> Race:
    timed = sorted(filter(is_timed, rows), key=lambda row: (row["latency_ms"], row["case"]))
    ranking = [row for row in timed if is_exact(row)]
    margins = _margins(ranking)
    elsewhere = len({*map(worker_of, ranking)}) > 1  # latencies of two workers are not paired
    if any(margin.value < 1 and (margin.by_processor_time or elsewhere) for margin in margins):
        values = [1.0, *(margin.value for margin in margins)]
        ranking = [row for _, row in sorted(zip(values, ranking, strict=True), key=itemgetter(0))]
        margins = _margins(ranking)
    return Race(
        ranking=ranking, margins=margins, inexact=[row for row in timed if not is_exact(row)]
    )


def _margins(ranking: Sequence[Row]) -> list[Ratio]:
    margins = (time_ratio(row, ranking[0]) for row in ranking[1:])
    return [margin for margin in margins if margin is not None]


class Raced(NamedTuple):
    """A problem over N at one of its lengths: the rows, and who is fastest."""

    group: Group
    n: int
    rows: list[Row]
    race: Race

    @property
    def place(self) -> str:
        """`N = 1 024, h = 8`."""
        return ", ".join(filter(None, (n_text(self.n), self.group.label)))


def fastest_of(rows: Sequence[Row], axes: Sequence[str]) -> list[Row]:
    """The fastest exact row of each problem that these axes tell apart."""
    problems = by(rows, lambda row: tuple(row.get(axis) for axis in axes)).values()
    return [row for some in problems for row in race(some).ranking[:1]]


def against_fastest(row: Row, rows: Sequence[Row]) -> tuple[str, Ratio | None]:
    """The fastest exact backend of these rows, and the time of `row` over its: "" and None if none
    was timed.
    """
    fastest = next(iter(race(rows).ranking), None)
    return (fastest["backend"], time_ratio(row, fastest)) if fastest else ("", None)


def races(rows: Sequence[Row]) -> list[Raced]:
    """At every length of every problem over N."""
    return [
        Raced(group, n, here, race(here))
        for group in groups(rows, "seq_len")
        for n, here in group.by_length.items()
    ]


def longest_race(group: Group) -> tuple[int, Race] | None:
    """The race at the longest N that two exact backends finished, else that one finished."""
    races = {n: race(here) for n, here in group.by_length.items()}
    ran = [n for n, found in races.items() if found.ranking]
    contested = [n for n in ran if races[n].margins]
    return (max(contested or ran), races[max(contested or ran)]) if ran else None


# ---- what is said of a race ----------------------------------------------------------------------


def finding(group: Group) -> str:
    """One sentence on the longest N with something to compare."""
    found = longest_race(group)
    if found is None:
        timed = any(row.get("latency_ms") is not None for row in group.rows)
        return group.prefixed(f"no {'exact backend' if timed else 'case'} has a latency")
    n, fastest = found
    here = group.by_length[n]
    where = ", ".join(filter(None, (n_text(n), group.label)))
    return capital(verdict(fastest, where, here))


def verdict(found: Race, where: str, rows: Sequence[Row]) -> str:
    """`at N = 2 048, h = 8: sdpa takes 14.6 ms, naive 3.26 times as long (3.24 to 3.28)`."""
    first = found.ranking[0]
    at = f"at {where}: " if where else ""
    text = f"{at}{first['backend']} takes {told_time(first)}"
    if not found.margins:
        why = alone(rows, found)
        return f"{text}, the {why}" if why else text
    other, margin = found.rival
    text += f", {other['backend']} {number_text(margin.value)} times as long ({margin.bounds}"
    if found.clear:
        return f"{text}): {CONFIRMED.words}"
    return f"{text}{margin.why_not_decided}): {found.mark.words}"


def alone(rows: Sequence[Row], found: Race) -> str:
    """Why there is nothing to compare the only exact backend with; "" if nothing else was tried."""
    exact = "exact " if found.inexact else ""
    others = {row["status"] for row in rows if row["status"] != "ok"}
    if not others:
        return ""
    return f"only {exact}one that {'fits' if others <= {*OUT_OF_MEMORY} else 'ran'}"
