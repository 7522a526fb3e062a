"""Cases over many runs: their times against the first one, and the run from which on they differ.

Times of different runs drift with the machine, and ratios to another backend of the same blocks
much less (docs/method.md, Many runs). So changes are looked for in times against those of a
reference backend. Without one they are looked for in the times, and are confirmed only beyond what
self-checks say that runs differ by.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count, pairwise
from math import inf, log, nan
from statistics import median
from typing import Any

from ...harness.files.errors import BadInput
from ...harness.files.printable import visible
from ...harness.stats.change_points import FEWEST_BESIDE, FEWEST_RUNS, change_points, fewest_beside
from ...harness.stats.contrasts import Contrast
from ...harness.stats.intervals import Interval, units_of
from ..formatting import list_text, plural
from ..ratio import Noise, in_same_blocks
from ..words import NOT_DECIDED, Word, word_of
from .case_samples import CaseSamples
from .compare import Comparison, Folder, Side, compare_sides, problem_of, read_side
from .history import unlike
from .verdict import Rules, peak_verdict
from .verdict_text import clipped, fact_text

MOST_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From run number `at` on (0 is the first), a case takes `ratio` times as long as before, back
    to the change before. `word`: by the interval and the margin; not decided also where the
    drift of the machine may be all of it.
    """

    at: int
    ratio: Interval
    word: Word


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTrend:
    """`case`: as the newest run has it. Of each run, None where it has none: `ratios` of the times
    (of those against the reference, if the trend has one) to that of the base, `peaks` in bytes;
    and whether other work disturbed most blocks. `more_bytes`: by the number of the run, how many
    more than in the run before, where the two differ.
    """

    case: CaseSamples
    ratios: Sequence[Interval | None]
    changes: Sequence[Change]
    peaks: Sequence[int | None]
    disturbed: Sequence[bool]
    more_bytes: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Runs of one machine, its versions and settings, oldest first. `comparison`: of the base with
    the newest. `reference`: the backend against which times are held; "" for none. `notes`: what
    was left out or kept apart, and how changes are looked for.
    """

    runs: Sequence[Side]
    comparison: Comparison
    reference: str
    cases: Sequence[CaseTrend]
    notes: Sequence[str]

    @property
    def base(self) -> int:
        """The number of the run that ratios are to; 0 is the first."""
        return next(at for at, run in enumerate(self.runs) if run is self.comparison.base)

    def changes(self, *, confirmed: bool) -> list[tuple[CaseTrend, Change]]:
        """Of times, the earliest first."""
        every = [(one, change) for one in self.cases for change in one.changes]
        some = [(one, change) for one, change in every if _decided(change) == confirmed]
        return sorted(some, key=lambda pair: pair[1].at)


def trend(
    paths: Sequence[Folder],
    base: Folder | None = None,
    *,
    against: str | None = None,
    only: Sequence[str] = (),
    salvage: bool = False,
) -> Trend:
    """`base`: the run that ratios are to; the first if not given. `against`: the reference; if not
    given the scenario's `baseline`. `only`: as of compare_runs.

    Raises BadRun, BadInput and NothingSelected.
    """
    first = read_side(base, salvage=salvage) if base is not None else None
    sides, notes = _read([one for one in paths if one != base], salvage=salvage)
    sides = sorted([*sides, *([first] if first else [])], key=_started)
    if len(sides) < 2:
        raise BadInput(
            *notes, f"{plural(len(sides), 'run')}; wanted two or more, such as a folder of runs"
        )
    newest = sides[-1]
    runs = [one for one in sides if not _apart(one, newest)]
    notes += _kept_apart(sides, newest)
    if first is not None and _apart(first, newest):
        raise BadInput(f"--base: {first.shown}: {_apart(first, newest)}, unlike the newest run")
    if len(runs) < 2:
        raise BadInput(f"{newest.shown}: nothing to compare with; {notes[-1]}")
    first = first or runs[0]
    at = next(place for place, one in enumerate(runs) if one is first)
    comparison = compare_sides(first, newest, None, only, allow=True)
    reference = _reference(newest, against)
    cases = _cases(runs, at, comparison, reference)
    notes += _untimed(runs)
    timed = sum(sum(map(bool, one.ratios)) == len(runs) for one in cases)
    notes += _what_is_found(len(runs), max(1, timed))
    if len(runs) >= FEWEST_RUNS:
        notes += _how(reference, comparison.rules)
    return Trend(runs=runs, comparison=comparison, reference=reference, cases=cases, notes=notes)


# ---- which runs ----------------------------------------------------------------------------------


def _read(paths: Sequence[Folder], *, salvage: bool) -> tuple[list[Side], list[str]]:
    """And why the others cannot be read."""
    sides, notes = [], []
    for path in paths:
        try:
            sides.append(read_side(path, salvage=salvage))
        except BadInput as error:
            notes.append(f"Left out: {error}")
    return sides, notes


def _started(side: Side) -> tuple[float, str]:
    with suppress(ValueError):
        return datetime.fromisoformat(str(side.meta.get("started_utc"))).timestamp(), side.name
    return inf, side.name


def _apart(side: Side, newest: Side) -> str:
    """Why a run cannot stand beside the newest; "" if it can."""
    facts = [f"{one.fact} {clipped(fact_text(one.base))}" for one in unlike(side, newest)]
    if not facts and not side.by_id.keys() & newest.by_id.keys():
        return "no case in common"
    return list_text(list(dict.fromkeys(facts)))


def _kept_apart(sides: Sequence[Side], newest: Side) -> Iterator[str]:
    reasons = [why for side in sides if (why := _apart(side, newest))]
    if reasons:
        different = list(dict.fromkeys(reasons))
        some = "; ".join(different[:MOST_NAMED])
        more = f"; and {len(different) - MOST_NAMED} more" if len(different) > MOST_NAMED else ""
        yield (
            f"{plural(len(reasons), 'run')} kept apart, unlike the newest one in machine, versions,"
            f" settings or cases: {some}{more}. Name them alone to see them."
        )


def _untimed(runs: Sequence[Side]) -> Iterator[str]:
    names = [side.shown for side in runs if not any(map(_is_timed, side.cases))]
    if names:
        yield f"Without times: {', '.join(names)}."


def _what_is_found(runs: int, cases: int) -> Iterator[str]:
    """What so few runs can show of times."""
    if (beside := fewest_beside(runs, cases)) == FEWEST_BESIDE:
        return
    of = f"{plural(runs, 'run')} with {plural(cases, 'timed case')}"
    if beside is not None:
        yield (
            f"Of {of}, a change of a time is found for sure only with {beside} or more before it"
            f" and {beside} or more from it on. Bytes are exact in every run."
        )
        return
    wanted = next(many for many in count(max(runs, FEWEST_RUNS)) if fewest_beside(many, cases))
    yield (
        f"Of {of}, chance alone may order times as any change would: a change is found for sure"
        f" from {wanted} runs on, {fewest_beside(wanted, cases)} of them on either side."
        " `attnbench compare` judges two runs, and bytes are exact in every run."
    )


def _how(reference: str, rules: Rules) -> Iterator[str]:
    if reference:
        yield (
            f"A change is one of the time against {clipped(reference)} in the same blocks, since"
            f" times of different runs drift. If {clipped(reference)} itself changes, all others"
            " change the other way."
        )
    else:
        known = rules.noise.between_runs is not None
        what = "" if known else ", and how much is not known (attnbench doctor --deep)"
        yield (
            f"Times of different runs drift with the machine{what}: name a backend of the same"
            " runs with --against BACKEND to see what else changes."
        )


# ---- times ---------------------------------------------------------------------------------------


def _is_timed(case: CaseSamples | None) -> bool:
    return case is not None and "latency" in case.measured


def _decided(change: Change) -> bool:
    return change.word != NOT_DECIDED


def _reference(newest: Side, against: str | None) -> str:
    timed = list(dict.fromkeys(one.backend for one in newest.cases if _is_timed(one)))
    if against is not None and against not in timed:
        raise BadInput(
            f"--against: no times of {visible(repr(against))} in {newest.shown}; there are:"
            f" {visible(', '.join(timed)) or 'none'}"
        )
    name = against or newest.meta["scenario"].get("baseline")
    return str(name) if name in timed and len(timed) > 1 else ""


def _cases(
    runs: Sequence[Side], base: int, comparison: Comparison, reference: str
) -> list[CaseTrend]:
    """Of all that the newest run or the base has, as `comparison` selects it."""
    ids = list(dict.fromkeys(one.shown.case for one in comparison.verdicts))
    every = [side.by_id for side in runs]
    references = [
        {problem_of(one): one for one in side.cases if one.backend == reference} for side in runs
    ]
    rows = [[known.get(case) for known in every] for case in ids]
    times = [
        [_time(one, of, reference) for one, of in zip(row, references, strict=True)] for row in rows
    ]
    found = change_points(
        [[nan if time is None else time.log_ratio for time in some] for some in times]
    )
    rules = comparison.rules
    return [
        CaseTrend(
            case=next(one for one in reversed(row) if one is not None),
            ratios=list(_ratios(row, some, base, rules.noise, paired=bool(reference))),
            changes=list(_changes(some, places, rules, paired=bool(reference))),
            peaks=[None if one is None else one.peak_bytes for one in row],
            disturbed=[one is not None and one.disturbed for one in row],
            more_bytes=_more_bytes(row, rules),
        )
        for row, some, places in zip(rows, times, found, strict=True)
    ]


def _time(
    case: CaseSamples | None, references: Mapping[tuple[Any, ...], CaseSamples], reference: str
) -> Contrast | None:
    """Logarithms of the time in ms by process, or of those against the reference; None without. If
    the two share no block, one number without an interval.
    """
    if case is None or not _is_timed(case):
        return None
    if not reference:
        return _alone(case)
    other = references.get(problem_of(case))
    if other is None or not _is_timed(other) or case.backend == reference:
        return None
    at_once = case.session is not None and case.session == other.session
    if at_once and (together := in_same_blocks(case.block_ms, other.block_ms)):
        return together
    centres = [one.centre(one.numerator) for one in (_alone(case), _alone(other))]
    return Contrast(numerator=(centres[0] - centres[1],))


def _alone(case: CaseSamples) -> Contrast:
    logs, reason = units_of(
        [[log(median(block)) for block in process if block] for process in case.block_ms]
    )
    return Contrast(numerator=tuple(logs), reason=reason)


def _ratios(
    row: Sequence[CaseSamples | None],
    times: Sequence[Contrast | None],
    base: int,
    noise: Noise,
    *,
    paired: bool,
) -> Iterator[Interval | None]:
    """To the base, or where that has no time to the first run that has one, which are exactly 1."""
    known = [place for place, time in enumerate(times) if time is not None]
    at = base if base in known else min(known, default=base)
    for place, (case, time) in enumerate(zip(row, times, strict=True)):
        first, first_case = times[at], row[at]
        if time is None or first is None or case is None or first_case is None:
            yield None
        elif place == at:
            yield Interval(value=1.0, low=1.0, high=1.0, units=len(time.numerator))
        else:
            reason = time.reason or first.reason
            yield noise.in_contrast(
                Contrast(numerator=time.numerator, denominator=first.numerator, reason=reason),
                one_process=bool(reason),
                other_run=not paired,
                disturbed=case.disturbed or first_case.disturbed,
            ).interval()


def _changes(
    times: Sequence[Contrast | None], places: Sequence[int], rules: Rules, *, paired: bool
) -> Iterator[Change]:
    """Without those that are the same within the margin. A run is a unit."""
    between = None if paired else rules.noise.between_runs
    for number, at in enumerate(places):
        begin, end = [0, *places][number], [*places, len(times)][number + 1]
        before, after = (
            tuple(time.log_ratio for time in some if time is not None)
            for some in (times[begin:at], times[at:end])
        )
        contrast = Contrast(numerator=after, denominator=before)
        ratio = (contrast if between is None else contrast.with_effect(between)).interval()
        word = word_of(ratio.low, ratio.high, rules.margin_ratio("latency", paired=paired))
        if word != "same":
            is_known = paired or between is not None
            yield Change(at=at, ratio=ratio, word=word if is_known else NOT_DECIDED)


def _more_bytes(row: Sequence[CaseSamples | None], rules: Rules) -> dict[int, int]:
    known = [
        (place, one)
        for place, one in enumerate(row)
        if one is not None and one.peak_bytes is not None
    ]
    found = {
        place: peak_verdict(before, now, rules) for (_, before), (place, now) in pairwise(known)
    }
    more = {place: int(one.new_value - one.base_value) for place, one in found.items()}
    return {place: count for place, count in more.items() if count}
