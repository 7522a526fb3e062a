"""Which exact backend is fastest on a problem, and how sure that is.

All counts are of the judge's marks, so that headline, counts and tables agree.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from ..data.beside import worker_of
from ..data.exactness import is_exact
from ..data.processor_time import told_time
from ..data.row_groups import Group, Row, by, groups, is_timed, once
from ..data.run_meta import OUT_OF_MEMORY, Meta
from ..deciding import what_decides_ratios
from ..formatting import capital, list_text, number_text, paragraph
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..words import BY_PROCESSOR_TIME, CONFIRMED, NOISY, REACH, SAME, SAME_RATIO, SEEN, Mark
from ._over import n_text

EQUAL = f"equal within {100 * SAME_RATIO:g} %"
MARKED = {
    CONFIRMED: ("has a confirmed winner", "have a confirmed winner"),
    SAME: (f"is {EQUAL}", f"are {EQUAL}"),
    SEEN: ("is not confirmed", "are not confirmed"),
    NOISY: (f"is {NOISY.words}", f"are {NOISY.words}"),
}
NOT_JUDGED = "Times were not judged: other work disturbed most blocks."


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

    @property
    def from_fastest(self) -> list[tuple[Row, Ratio | None]]:
        """Every time over that of the fastest, which has none. In pairs of blocks it may be another
        one than by its latency.
        """
        first = self.ranking[0]
        fastest, least = min(self.pairs, key=lambda pair: pair[1].value, default=(first, None))
        if least is None or least.value >= 1:
            return [(first, None), *self.pairs]
        others = [row for row in self.ranking if row is not fastest]
        return [(fastest, None), *((row, time_ratio(row, fastest)) for row in others)]


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
    inexact = [row for row in timed if not is_exact(row)]
    return Race(ranking=ranking, margins=margins, inexact=inexact)


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
        """`N = 1 024, h = 8`. A length of 1 is not named beside others: tokens come one by one."""
        n = "" if self.n == 1 and self.group.label else n_text(self.n)
        return ", ".join(filter(None, (n, self.group.label)))

    @property
    def size(self) -> list[int]:
        return size_of(self.rows[0])


def size_of(row: Row) -> list[int]:
    """By which the largest problem is found."""
    return [row.get(axis) or 0 for axis in ("seq_len", "kv_seq_len", "heads", "batch", "d_model")]


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


# ---- what is said of a race ----------------------------------------------------------------------


def verdict(of: Raced) -> str:
    """`sdpa takes 14.6 ms at N = 2 048, h = 8, and naive 3.26 times as long (3.24 to 3.28):
    confirmed.`
    """
    found, first = of.race, of.race.ranking[0]
    text = f"{first['backend']} takes {told_time(first)}{f' at {of.place}' if of.place else ''}"
    if not found.margins:
        why = alone(of.rows, found)
        return f"{text}, the {why}." if why else f"{text}."
    other, margin = found.rival
    mark, why = (CONFIRMED, "") if found.clear else (found.mark, margin.why_not_decided)
    text += f", and {other['backend']} {number_text(margin.value)} times as long"
    return f"{text} ({margin.bounds}{why}): {mark.words}."


def alone(rows: Sequence[Row], found: Race) -> str:
    """Why there is nothing to compare the only exact backend with; "" if nothing else was tried."""
    exact = "exact " if found.inexact else ""
    others = {row["status"] for row in rows if row["status"] != "ok"}
    if not others:
        return ""
    return f"only {exact}one that {'fits' if others <= {*OUT_OF_MEMORY} else 'ran'}"


def surer(contested: Sequence[Raced], rows: Sequence[Row], meta: Meta) -> str:
    open_ones = [one.race.rival[1] for one in contested if one.race.close]
    return what_decides_ratios(open_ones, rows, meta)


def how_sure(contested: Sequence[Raced]) -> str:
    """`Of 10 comparisons, 4 have a confirmed winner and 6 are equal within 5 %.` Of every problem
    with somebody to beat; once for all if processor times were compared.
    """
    ratios = [margin for one in contested for margin in one.race.margins]
    how = f", {BY_PROCESSOR_TIME}" if any(one.by_processor_time for one in ratios) else ""
    counts = Counter(one.race.mark for one in contested)
    reach = f"{REACH}." if CONFIRMED in counts else ""
    if len(contested) == 1:
        (mark,) = counts
        said = "the first two are the same" if mark == SAME else f"who is fastest is {mark.words}"
        return paragraph(f"{capital(said + how)}.", reach)
    parts = [
        f"{some if some < len(contested) else 'all'} {words[some > 1]}"
        for mark, words in MARKED.items()
        if (some := counts[mark])
    ]
    return paragraph(f"Of {len(contested)} comparisons, {list_text(parts)}{how}.", reach)
