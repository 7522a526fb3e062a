"""Which exact backend is fastest on a problem, which one to take for all, and how sure that is.

All counts are of the judge's marks, so that headline, counts and tables agree.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from typing import Literal, NamedTuple

from ...harness.rows.record import FAILURES
from ..data.beside import worker_of
from ..data.exactness import is_exact
from ..data.processor_time import told_time
from ..data.row_groups import Group, Row, backends, by, case_key, groups, is_timed, once
from ..data.run_meta import OUT_OF_MEMORY, Meta
from ..deciding import what_decides_ratios
from ..elements import Marked, Table, table_of
from ..formatting import bytes_text, capital, length_text, list_text, number_text, paragraph
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..quantity import Cell, Number
from ..words import BY_PROCESSOR_TIME, CONFIRMED, NOISY, REACH, SAME, SAME_RATIO, SEEN, Mark
from ._memory_over_n import need_bytes
from ._over import n_text

EQUAL = f"equal within {100 * SAME_RATIO:g} %"
MARKED = {
    CONFIRMED: ("has a confirmed winner", "have a confirmed winner"),
    SAME: (f"is {EQUAL}", f"are {EQUAL}"),
    SEEN: ("is not confirmed", "are not confirmed"),
    NOISY: (f"is {NOISY.words}", f"are {NOISY.words}"),
}
MOST_LENGTHS, MOST_NAMES = 3, 4
MOST_CHOICES = 16  # of a table
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


# ---- which one to take ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowest:
    """A backend's time relative to the fastest on one problem; no ratio if it was the fastest."""

    of: Raced
    ratio: Ratio | None

    @property
    def value(self) -> float:
        return 1.0 if self.ratio is None else max(1.0, self.ratio.value)

    @property
    def mark(self) -> Mark:
        """Of the ratio; of the fastest, how sure that is. With nobody to beat, it is."""
        if self.ratio is not None:
            return self.ratio.mark
        return self.of.race.mark if self.of.race.margins else CONFIRMED

    @property
    def outcome(self) -> Literal["good", "slower", "open"]:
        """Good: confirmed to be the fastest, or equal to it."""
        if self.mark == SAME or (self.ratio is None and self.mark == CONFIRMED):
            return "good"
        return "slower" if self.mark == CONFIRMED else "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What it means to take a backend, over the problems that some exact backend finished.

    `times`: relative to the fastest, a problem each. `unfit`, `failed`: problems that do not fit,
    or that ended otherwise. `only`: those that no other one finished.
    """

    backend: str
    times: Sequence[Slowest]
    unfit: int
    failed: int
    only: Sequence[Raced]

    @property
    def slowest(self) -> Slowest:
        return max(self.times, key=lambda one: one.value)

    @property
    def regret(self) -> float:
        """Where it took longest, as a multiple of the fastest's time; 1 where it is the same."""
        return max(1.0 if one.mark == SAME else one.value for one in self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Every backend that finished a problem, the one to take first.

    `judged`: whether times may name it; else other work disturbed most of them, and memory does.
    """

    problems: Sequence[Raced]
    every: Sequence[Choice]
    judged: bool


def choices(rows: Sequence[Row]) -> Choices | None:
    """None with nothing to choose from."""
    found = [one for one in races(rows) if one.race.ranking]
    contested = [one.race for one in found if one.race.margins]
    names = backends(row for one in found for row in one.race.ranking)
    every = [_choice(name, found) for name in names]
    if not contested or max(len(one.times) for one in every) > len(found):  # copies of one backend
        return None
    busy = sum(any(margin.disturbed for margin in one.margins) for one in contested)
    judged = 2 * busy <= len(contested)
    needs = [
        {row["backend"]: need for row in one.race.ranking if (need := need_bytes(row)) is not None}
        for one in found
    ]

    def rank(one: Choice) -> tuple[float, ...]:
        mine = [some[one.backend] / min(some.values()) for some in needs if one.backend in some]
        by_memory = max(mine, default=1.0)
        return -len(one.times), *((one.regret, by_memory) if judged else (by_memory,))

    return Choices(problems=found, every=sorted(every, key=rank), judged=judged)


def _choice(name: str, found: Sequence[Raced]) -> Choice:
    times = [
        Slowest(of=one, ratio=ratio)
        for one in found
        for row, ratio in one.race.from_fastest
        if row["backend"] == name
    ]
    mine = [row for one in found for row in one.rows if row["backend"] == name]
    ended = Counter(row["status"] in OUT_OF_MEMORY for row in mine if row["status"] != "ok")
    only = [one for one in found if {row["backend"] for row in one.race.ranking} == {name}]
    return Choice(backend=name, times=times, unfit=ended[True], failed=ended[False], only=only)


def take(of: Choices) -> str:
    """`Take sdpa: fastest or equal in 11 of 12 problems, and the only one that fits at N = 8 192.
    fused is 1.18 times as fast in 1 (h = 8: N = 128).` Every count is of marks.
    """
    best = of.every[0]
    only = _only(of) if len(of.every) > 1 and best.only else ""
    if not of.judged:
        return paragraph(f"By memory take {best.backend}{only}.", NOT_JUDGED, _without_result(of))
    choice = f"Take {best.backend}: {_how_fast(best, len(of.problems))}{only}."
    return paragraph(choice, _elsewhere(best), _without_result(of))


def _without_result(of: Choices) -> str:
    """`triton gave no result in any of them: timeout.` Without it, who asked for a backend that
    failed everywhere would not hear of it.
    """
    finished = {one.backend for one in of.every}
    rows = [row for one in of.problems for row in one.rows if row["backend"] not in finished]
    failed = [row for row in rows if row["status"] in FAILURES]
    statuses = list_text([*dict.fromkeys(row["status"] for row in failed)])
    names = list_text(backends(failed), MOST_NAMES)
    return f"{names} gave no result in any of them: {statuses}." if failed else ""


def _only(of: Choices) -> str:
    """`, and the only one that fits at N = 8 192`. Of others the table says what does not fit."""
    only = of.every[0].only
    failed = {row["status"] for one in only for row in one.rows} - {"ok"}
    lengths = sorted({one.n for one in only})
    where = f"at {_lengths(lengths)}"
    if any(one.n in lengths for one in of.problems if one not in only):  # N alone does not tell
        where = f"in {len(only)} of them"
    return f", and the only one that {'fits' if failed <= {*OUT_OF_MEMORY} else 'ran'} {where}"


def _how_fast(best: Choice, many: int) -> str:
    """`fastest or equal in 9 of 12 problems, within 4 % of the fastest seen in 2 (not confirmed)`,
    or how far from the fastest it ever is.
    """
    good = [one for one in best.times if one.outcome == "good"]
    left = [one.value for one in best.times if one.outcome == "open"]
    if many == 1:
        words = "as fast as any" if best.slowest.ratio else "the fastest"
        return f"{words} seen, not confirmed" if left else words
    parts = []
    if good:
        words = "fastest or equal" if any(one.mark == SAME for one in good) else "the fastest"
        every = "both" if many == 2 else f"all {many}"
        parts.append(
            f"{words} in {every if len(good) == many else f'{len(good)} of {many}'} problems"
        )
    if left:
        off = ceil(100 * (max(left) - 1) - 1e-6)
        near = f"within {off} % of the fastest seen" if off else "the fastest seen"
        parts.append(f"{near} in {len(left)} (not confirmed)")
    return (
        ", ".join(parts) or f"never more than {number_text(best.regret)} times the fastest's time"
    )


def _elsewhere(best: Choice) -> str:
    """`fused is up to 5.03 times as fast in 4 (h = 1: N = 512 and 1 024).`"""
    lost = [one for one in best.times if one.outcome == "slower"]
    if not lost:
        return ""
    first = [*dict.fromkeys(one.of.race.from_fastest[0][0]["backend"] for one in lost)]
    are, up = ("is" if len(first) == 1 else "are"), ("" if len(lost) == 1 else "up to ")
    how = f"{up}{number_text(max(one.value for one in lost))} times as fast in {len(lost)}"
    return f"{list_text(first, MOST_NAMES)} {are} {how} ({_places([one.of for one in lost])})."


def _places(some: Sequence[Raced]) -> str:
    """`h = 8: N = 512 and 1 024; h = 1: N = 1 024`."""
    texts = [
        f"{f'{label}: ' if label else ''}{_lengths(one.n for one in mine)}"
        for label, mine in by(some, lambda one: one.group.label).items()
    ]
    more = [f"{len(texts) - MOST_LENGTHS} more"] if len(texts) > MOST_LENGTHS else []
    return "; ".join([*texts[:MOST_LENGTHS], *more])


def _lengths(some: Iterable[int]) -> str:
    """`N = 512 and 1 024`."""
    return f"N\u00a0=\u00a0{list_text([*map(length_text, some)], MOST_LENGTHS)}"


def certainty(of: Choices, rows: Sequence[Row], meta: Meta) -> str:
    """How many comparisons have which mark, and what would decide more, with its command."""
    contested = [one for one in of.problems if one.race.margins]
    return paragraph(
        how_sure(contested) if of.judged else "Memory is exact.", surer(contested, rows, meta)
    )


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


def regret(of: Choices) -> Table:
    """What always taking one of them costs: how far from the fastest at most, what it does not run,
    and its memory at the largest problem that all of them finished.
    """
    many, best = len(of.problems), of.every[0].backend
    shared = [one for one in of.problems if len(one.race.ranking) == len(of.every)]
    largest = max(shared, key=lambda one: one.size, default=None)
    memory = "" if largest is None else f"memory at {largest.place}"
    needs = {row["backend"]: need_bytes(row) for row in (largest.race.ranking if largest else ())}

    def slowest(one: Choice) -> Cell | Marked:
        at = one.slowest
        if not of.judged:
            return "not judged"
        if at.ratio is None or at.value == 1.0:
            return "the fastest wherever it ran" if one.unfit or one.failed else "the fastest"
        row = next(row for row in at.of.rows if row["backend"] == one.backend)
        return Marked(cell=at.ratio.marked, case=case_key(row))

    def unfit(one: Choice) -> str:
        texts = [f"{one.unfit} of {many}"] if one.unfit else []
        texts += [f"{one.failed} did not run"] if one.failed else []
        return ", ".join(texts) or "never"

    return table_of(
        "If you always use one backend",
        of.every,
        {
            "backend": lambda one: Marked(cell=one.backend, strong=one.backend == best),
            "worst slowdown": slowest,
            "does not fit": unfit,
            memory: lambda one: Number(bytes_text(needs[one.backend])) if needs else "",
        },
        optional=(memory,),
        most=MOST_CHOICES,
    )
