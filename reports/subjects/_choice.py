"""Which exact backend to take for all problems, and what each other would have cost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from ...harness.rows.record import FAILURES
from ..data.row_groups import Row, backends, by, case_key
from ..data.run_meta import OUT_OF_MEMORY, Meta
from ..elements import Marked, Table, table_of
from ..formatting import bytes_text, length_text, list_text, number_text, paragraph
from ..judging.ratio import Ratio
from ..quantity import Cell, Number
from ..words import CONFIRMED, SAME, Mark
from ._memory_over_n import need_bytes
from ._race import NOT_JUDGED, Raced, how_sure, races, surer

MOST_LENGTHS, MOST_NAMES = 3, 4
MOST_CHOICES = 16  # of a table


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
