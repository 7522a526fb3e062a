"""Which backend to take: what is never far from the fastest, how sure that is, and the regret of
taking another one. All of it is true of what was measured, so that it needs no significance.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from ...harness.rows.record import FAILURES
from ..data.row_groups import Row, backends, by, case_key
from ..data.run_meta import OUT_OF_MEMORY, Meta
from ..deciding import what_decides_ratios
from ..elements import Marked, Table, table_of
from ..formatting import bytes_text, capital, length_text, list_text, number_text, paragraph, plural
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..quantity import Cell, Number
from ..words import BY_PROCESSOR_TIME, CONFIRMED, NOISY, REACH, SAME, SAME_RATIO, SEEN, Mark
from ._memory_over_n import need_bytes
from ._race import Race, Raced, races

MARKED = {
    CONFIRMED: ("has a confirmed winner", "have a confirmed winner"),
    SAME: (f"is equal within {100 * SAME_RATIO:g} %", f"are equal within {100 * SAME_RATIO:g} %"),
    SEEN: (f"is {SEEN.words}", f"are {SEEN.words}"),
    NOISY: (f"is {NOISY.words}", f"are {NOISY.words}"),
}
MOST_LENGTHS, MOST_NAMES = 3, 4
MOST_CHOICES = 16  # of a table
SIZES = ("seq_len", "kv_seq_len", "heads", "batch", "d_model")
NOT_JUDGED = "Times were not judged: other work disturbed most blocks."


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowest:
    """Where a backend took longest relative to the fastest; no ratio if it was the fastest."""

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
    def is_good(self) -> bool:
        """Confirmed to be the fastest, or equal to it."""
        return self.mark == SAME or (self.ratio is None and self.mark == CONFIRMED)

    @property
    def is_slower(self) -> bool:
        return self.ratio is not None and self.mark == CONFIRMED


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What it means to take a backend, over the problems that some exact backend finished.

    `times`: its time as a multiple of the fastest's, a problem each. `unfit`, `failed`: problems
    that do not fit, or that ended otherwise.
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

    @property
    def contested(self) -> list[Raced]:
        return [one for one in self.problems if one.race.margins]


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
    most = {
        name: max((one[name] / min(one.values()) for one in needs if name in one), default=1.0)
        for name in names
    }

    def rank(one: Choice) -> tuple[float, ...]:
        by_memory = most[one.backend]
        return -len(one.times), *((one.regret, by_memory) if judged else (by_memory,))

    return Choices(problems=found, every=sorted(every, key=rank), judged=judged)


def _choice(name: str, found: Sequence[Raced]) -> Choice:
    times = [
        Slowest(of=one, ratio=ratio)
        for one in found
        for row, ratio in _from_fastest(one.race)
        if row["backend"] == name
    ]
    ended = Counter(
        row["status"] in OUT_OF_MEMORY
        for one in found
        for row in one.rows
        if row["backend"] == name and row["status"] != "ok"
    )
    only = [one for one in found if {row["backend"] for row in one.race.ranking} == {name}]
    return Choice(backend=name, times=times, unfit=ended[True], failed=ended[False], only=only)


def _from_fastest(found: Race) -> list[tuple[Row, Ratio | None]]:
    """Every time over that of the fastest, which has none. In pairs of blocks it may be another one
    than by its latency.
    """
    first, pairs = found.ranking[0], found.pairs
    fastest, least = min(pairs, key=lambda pair: pair[1].value, default=(first, None))
    if least is None or least.value >= 1:
        return [(first, None), *pairs]
    others = [row for row in found.ranking if row is not fastest]
    return [(fastest, None), *((row, time_ratio(row, fastest)) for row in others)]


# ---- in a sentence -------------------------------------------------------------------------------


def take(of: Choices) -> str:
    """`Take sdpa: fastest or equal in 11 of 12 problems, and the only one that fits at N = 8 192.
    fused is 1.18 times as fast in the other (h = 8: N = 128).` Every count is of marks.
    """
    best, many = of.every[0], len(of.problems)
    if not of.judged:
        return f"By memory take {best.backend}{_only(of)}. {NOT_JUDGED}{_without_result(of)}"
    choice = f"Take {best.backend}: {_how_fast(best, many)}{_only(of)}."
    return choice + _elsewhere(best) + _without_result(of)


def _without_result(of: Choices) -> str:
    """` triton gave no result in any of them: timeout.` Without it, who asked for a backend that
    failed everywhere would not hear of it.
    """
    finished = {one.backend for one in of.every}
    failed = [
        row
        for one in of.problems
        for row in one.rows
        if row["backend"] not in finished and row["status"] in FAILURES
    ]
    if not failed:
        return ""
    names = list_text([*dict.fromkeys(row["backend"] for row in failed)], MOST_NAMES)
    statuses = list_text([*dict.fromkeys(row["status"] for row in failed)])
    return f" {names} gave no result in any of them: {statuses}."


def _lengths(some: Iterable[int]) -> str:
    """`N = 512 and 1 024`."""
    return f"N\u00a0=\u00a0{list_text([*map(length_text, some)], MOST_LENGTHS)}"


def _only(of: Choices) -> str:
    """`, and the only one that fits at N = 8 192`, else `; it fits at N = 8 192, where fused does
    not`: of the largest problem that the first one finished and others could not fit.
    """
    best = of.every[0]
    if len(of.every) < 2:
        return ""
    if best.only:
        failed = {row["status"] for one in best.only for row in one.rows} - {"ok"}
        fits = "fits" if failed <= {*OUT_OF_MEMORY} else "ran"
        lengths = {one.n for one in best.only}
        where = f"at {_lengths(sorted(lengths))}"
        if any(one.n in lengths for one in of.problems if one not in best.only):
            where = f"in {len(best.only)} of them ({_places(best.only)})"
        return f", and the only one that {fits} {where}"
    lost = [
        (one, names)
        for one in of.problems
        if any(row["backend"] == best.backend for row in one.race.ranking)
        and (names := backends(row for row in one.rows if row["status"] in OUT_OF_MEMORY))
    ]
    if not lost:
        return ""
    one, names = max(lost, key=lambda pair: _size(pair[0]))
    do = "does" if len(names) == 1 else "do"
    return f"; it fits at {_lengths([one.n])}, where {list_text(names, MOST_NAMES)} {do} not"


def _count(some: int, of: int) -> str:
    if some < of:
        return f"{some} of {of} problems"
    return "this problem" if of == 1 else f"{'both' if of == 2 else f'all {of}'} problems"


def _how_fast(best: Choice, many: int) -> str:
    """`fastest or equal in 9 of 12 problems, not confirmed in 2`."""
    good = [one for one in best.times if one.is_good]
    left = sum(not (one.is_good or one.is_slower) for one in best.times)
    if many == 1:
        words = "as fast as any" if best.slowest.ratio else "the fastest"
        return f"{words} seen, not confirmed" if left else words
    equal = any(one.mark == SAME for one in good)
    words = "fastest or equal" if equal else "the fastest"
    first = f"{words} in {_count(len(good), many)}" if good else ""
    never = f"never more than {number_text(best.regret)} times the fastest's time"
    return ", ".join(filter(None, [first, _left(best)])) or never


def _left(best: Choice) -> str:
    """`not confirmed in 2 (within 4 % of the fastest there)`."""
    left = [one.value for one in best.times if not (one.is_good or one.is_slower)]
    off = ceil(100 * (max(left, default=1.0) - 1) - 1e-6)
    near = "the fastest seen" if off == 0 else f"within {off} % of the fastest seen"
    return f"not confirmed in {len(left)} ({near} there)" if left else ""


def _elsewhere(best: Choice) -> str:
    """` fused is up to 5.03 times as fast in the other 4 (h = 1: N = 512 and 1 024).`"""
    lost = [one for one in best.times if one.is_slower]
    if not lost:
        return ""
    first = dict.fromkeys(_from_fastest(one.of.race)[0][0]["backend"] for one in lost)
    are = "is" if len(first) == 1 else "are"
    most = max(one.value for one in lost)
    how = f"{'' if len(lost) == 1 else 'up to '}{number_text(most)} times as fast"
    where = _places([one.of for one in lost])
    return f" {list_text([*first], MOST_NAMES)} {are} {how} in {len(lost)} ({where})."


def certainty(of: Choices, rows: Sequence[Row], meta: Meta, *, brief: bool = False) -> str:
    """`Who is fastest is confirmed in 3 of 10 problems (h = 8: N = 1 024), seen here, not confirmed
    in 6 and too noisy in 1.` And what would make it surer, with its time and command.
    """
    contested = of.contested
    open_ones = [one.race.rival[1] for one in contested if one.race.close]
    surer = what_decides_ratios(open_ones, rows, meta)
    sure = how_sure(contested, brief=brief) if of.judged else "Memory is exact"
    return paragraph(f"{sure}.", surer)


def how_sure(contested: Sequence[Raced], *, brief: bool = False) -> str:
    """Of every problem with somebody to beat: how many have which mark, and which those are that
    are confirmed (`brief`: only how many); and once for all if processor times were compared.

    `Of 10 comparisons, 4 have a confirmed winner (h = 8: N = 1 024) and 6 are equal within 5 %`
    """
    of, ratios = len(contested), [margin for one in contested for margin in one.race.margins]
    how = f", {BY_PROCESSOR_TIME}" if any(one.by_processor_time for one in ratios) else ""
    by_mark = by(contested, lambda one: one.race.mark)
    if of == 1:
        (mark,) = by_mark
        said = "the first two are the same" if mark == SAME else f"who is fastest is {mark.words}"
        return capital(said + how) + (f". {REACH}" if mark == CONFIRMED else "")
    parts: list[str] = []
    for mark, words in MARKED.items():
        if some := by_mark.get(mark):
            verb = words[0] if len(some) == 1 else words[1]
            placed = mark == CONFIRMED and len(some) < of and not brief
            where = f" ({_places(some)})" if placed else ""
            parts.append(f"{len(some) if len(some) < of else 'all'} {verb}{where}")
    reach = f". {REACH}" if CONFIRMED in by_mark else ""
    return f"Of {of} comparisons, {list_text(parts)}{how}{reach}"


def _places(some: Sequence[Raced]) -> str:
    """`h = 8: N = 512 and 1 024; h = 1: N = 1 024`."""
    texts = [
        f"{f'{label}: ' if label else ''}{_lengths(one.n for one in mine)}"
        for label, mine in by(some, lambda one: one.group.label).items()
    ]
    more = [f"{len(texts) - MOST_LENGTHS} more"] if len(texts) > MOST_LENGTHS else []
    return "; ".join([*texts[:MOST_LENGTHS], *more])


# ---- the table of regret -------------------------------------------------------------------------


def regret(of: Choices, *, brief: bool = False) -> Table:
    """What taking each of them costs: how far from the fastest at most, what it does not run, and
    its memory at the largest problem that all of them finished. `brief`: without where it is worst.
    """
    many = len(of.problems)
    shared = [one for one in of.problems if len(one.race.ranking) == len(of.every)]
    largest = max(shared, key=_size, default=None)
    where = "" if largest is None else largest.place

    def slowest(one: Choice) -> Cell | Marked:
        if not of.judged:
            return "not judged"
        at = one.slowest
        if at.ratio is None or at.value == 1.0:
            return "the fastest wherever it ran" if one.unfit or one.failed else "the fastest"
        row = next(row for row in at.of.rows if row["backend"] == one.backend)
        where = "" if brief else f" at {at.of.place}"
        return Marked(cell=f"{at.ratio.marked}{where}", case=case_key(row))

    def unfit(one: Choice) -> str:
        texts = [f"{one.unfit} of {many}"] if one.unfit else []
        texts += [f"{one.failed} did not run"] if one.failed else []
        return ", ".join(texts) or "never"

    def memory(one: Choice) -> Cell:
        rows = [] if largest is None else largest.race.ranking
        return next(
            (Number(bytes_text(need_bytes(row))) for row in rows if row["backend"] == one.backend),
            "",
        )

    best = of.every[0].backend
    slowest_title = f"slowest relative to the best, in {plural(many, 'problem')}"
    return table_of(
        "What taking each of them would have cost in what was measured",
        of.every,
        {
            "if you take": lambda one: Marked(cell=one.backend, strong=one.backend == best),
            ("time at worst" if brief else slowest_title): slowest,
            "does not fit": unfit,
            f"memory at {where}": memory,
        },
        optional=(f"memory at {where}",),
        most=MOST_CHOICES,
    )


def _size(of: Raced) -> list[int]:
    return [of.rows[0].get(axis) or 0 for axis in SIZES]
