"""Do devices of one kind take the same time? The same cases, measured on several on purpose."""

from collections.abc import Iterator, Sequence

from ...harness.stats.intervals import Interval
from ..comparison.devices import (
    MARGIN_RATIO,
    Copies,
    DevicePair,
    copies_of,
    finding,
    interval_text,
    problem_text,
    ratio_text,
    repeats_text,
    spread_text,
)
from ..data.processor_time import time_of
from ..data.row_groups import Row, case_key
from ..data.run_meta import Meta
from ..elements import Block, Card, Dot, DotPlot, DotRow, Marked, Text, note, table_of
from ..formatting import percent_text, plural
from ..quantity import Number
from ..words import Word, word_of
from . import Subject

TITLE = "Between devices"
SECTION = "asked"
ORDER = 6
NEEDS = ("replica", "block_ms")
ALL_COPIES = True
MOST_DOTS = 12  # those that differ most
MOST_TABLE_ROWS = 200
ALL, MEAN = "all cases", "mean"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = copies_of(list(rows), meta)
    if not found:
        return Subject(
            lacking="Every case was measured once. attnbench run measures each on two devices if"
            " --replicate 2 is given, with --shard."
        )
    spread = [one for one in found if one.spread]
    apart = [one for one in found if not one.spread]
    last = note(
        "The other sections show the first copy of each case. What devices differ by includes their"
        " hosts, and whatever else ran there."
    )
    names = [f" of {one.run}" if len(meta) > 1 else "" for one in found]
    details = [block for some in map(_details, found, names) for block in some]
    return Subject(
        card=_card(spread) if spread else None,
        lines=tuple(f"{finding(one)}." for one in apart),
        blocks=(*details, last),
    )


def _card(found: Sequence[Copies]) -> Card:
    dots = [line for one in found for line in _lines(one)]
    left = sum(len(one.cases) for one in found) - sum(label != MEAN for _, label, *_ in dots)
    more = f" {plural(left, 'more case is', 'more cases are')} under Between devices."
    of = "Time on the slower device over that on the faster"
    return Card(
        title="Between devices",
        sentence=" ".join(_sentence(one) for one in found),
        picture=DotPlot(
            rows=tuple(
                DotRow(
                    group=group, label=label, dot=Dot.of(ratio.value, ratio.low, ratio.high, word)
                )
                for group, label, ratio, word in dots
            ),
            x_label=f"{of[0].lower()}{of[1:]}",
            band_ratio=MARGIN_RATIO,
            table=table_of(
                of,
                dots,
                {
                    "backend": lambda dot: dot[0],
                    "problem": lambda dot: dot[1],
                    "ratio": lambda dot: Number(ratio_text(dot[2])),
                },
            ),
        ),
        subtitle="the same cases on two devices of one kind, measured on purpose",
        note="Devices differ with their hosts, and with what else ran there."
        + (more if left > 0 else ""),
    )


def _sentence(found: Copies) -> str:
    assert found.spread is not None
    return f"{finding(found)}. Device-to-device spread: {spread_text(found.spread)}."


def _lines(found: Copies) -> list[tuple[str, str, Interval, Word]]:
    """The backend and the problem, the ratio, and what it lets one say; the mean first, then the
    cases that differ most, by backend.
    """
    pair = found.spread
    assert pair is not None
    worst = found.cases[:MOST_DOTS]
    names = list(dict.fromkeys(one.new["backend"] for one in worst))
    return [
        (ALL, MEAN, pair.ratio, pair.word),
        *(
            (one.new["backend"], problem_text(one, found), one.ratio, word)
            for one in sorted(worst, key=lambda one: names.index(one.new["backend"]))
            for word in [word_of(one.ratio.low, one.ratio.high, MARGIN_RATIO)]
        ),
    ]


def _details(found: Copies, of: str) -> Iterator[Block]:
    pair = found.spread
    if found.between:
        yield Text(
            text=f"95 % of times on two of the {len(found.devices)} devices are within"
            f" {percent_text(found.between.ratio)} of each other{of}."
        )
    yield from (Text(text=f"{repeats_text(one)}{of}.") for one in found.repeats)
    if pair:
        yield note(
            "The spread is the time on the slower device over that on the faster, less 1: the"
            " geometric mean over the cases of a group, then over groups, with an interval by"
            " Student t over groups. Groups are measured at different times, so the interval has"
            f" what a device differs by from one time to another. Up to"
            f" {100 * MARGIN_RATIO:g} % counts as the same."
        )
        if len(found.pairs) > 1:
            yield note(
                f"The interval allows for the choice among {len(found.pairs)} pairs of devices"
                " (Bonferroni)."
            )
    if found.devices:
        yield table_of(
            f"Timed copies by device{of}",
            list(found.devices.items())[:MOST_TABLE_ROWS],
            {
                "device": lambda pair: pair[0].label,
                "cases": lambda pair: pair[1],
                "host": lambda pair: pair[0].host,
                "UUID": lambda pair: pair[0].uuid,
                "name": lambda pair: pair[0].name,
            },
        )
    if len(found.pairs) > 1:
        yield table_of(
            f"Every pair of devices with a group in common, the largest difference first{of}",
            found.pairs[:MOST_TABLE_ROWS],
            {
                "slower": lambda one: one.new.label,
                "faster": lambda one: one.base.label,
                "groups": lambda one: one.groups,
                "slower over faster": lambda one: Number(interval_text(one.ratio)),
            },
        )
    if pair and found.cases:
        yield from _cases(found, pair, of)


def _cases(found: Copies, pair: DevicePair, of: str) -> Iterator[Block]:
    """Each case on the two devices that differ most."""

    def time(row: Row) -> Marked:
        return Marked(cell=time_of(row), case=case_key(row))

    yield table_of(
        f"{pair.new.label} over {pair.base.label}, case by case{of}",
        found.cases[:MOST_TABLE_ROWS],
        {
            "backend": lambda one: one.new["backend"],
            "problem": lambda one: problem_text(one, found),
            pair.base.label: lambda one: time(one.base),
            pair.new.label: lambda one: time(one.new),
            "ratio": lambda one: Number(ratio_text(one.ratio)),
        },
    )
    if (more := len(found.cases) - MOST_TABLE_ROWS) > 0:
        yield note(f"{more} more cases differ less; show --format csv has them all.")
    yield note(
        "Intervals of single cases have what processes differ by, not how a device's speed drifts"
        " between the two measurements."
    )
