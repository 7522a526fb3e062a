"""How fast kernels are: FLOP/s of each backend at the longest N, beside the measured peak."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..data.peaks import peaks
from ..data.row_groups import Row, axis_text, backends, by, case_key, groups
from ..data.run_meta import Meta, ours, question
from ..elements import ASIDE, Bar, Bars, Card, Table
from ..formatting import capital, list_text, number_text, paragraph, plural, rate_text, share_text
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio
from ..words import meaning_of
from . import Subject
from ._over import by_backend, n_text
from .roofline import NO_PEAKS

TITLE = "Speed of the kernels"
SECTION = "asked"
ORDER = 0
ASKED = "kernel"  # in the question of a run whose answer this is
SIDES = {
    "more": ("faster than", "faster"),
    "less": ("slower than", "slower"),
    "same": ("equal to", "equal"),
    "not decided": ("not confirmed against", "not confirmed"),
}
PAPERS = "A backward pass counts its 4 products; papers count 5 (in the table of all rows)."


class Speed(NamedTuple):
    """Of a case at the longest N. A peak of 0 was not measured; `time` is over the first's."""

    problem: str
    name: str
    row: Row
    flops_per_s: float
    peak_flops_per_s: float
    time: Ratio | None


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    timed = asked(rows, meta)
    if not timed:
        return Subject(lacking="No run asks how fast kernels are and timed two of them on a GPU.")
    found = [*_speeds(timed, meta)]
    lengths = list_text([*map(n_text, sorted({one.row["seq_len"] for one in found}))])
    known = [one.peak_flops_per_s for one in found]
    peak = f"The frame of a bar is the measured peak of matrix products, {rate_text(max(known))}."
    papers = PAPERS if any(row["papers_flops_per_s"] for row in timed) else ""
    marks = meaning_of({one.time.mark for one in found if one.time})
    card = Card(
        title=TITLE,
        subtitle=f"at {lengths}",
        sentence=paragraph(*_rates(found), *_against(found)),
        picture=_bars(found, f"{TITLE} at {lengths}", framed=all(known)),
        decisions=_beside(found),
        note=paragraph(peak if all(known) else NO_PEAKS, papers, marks),
    )
    return Subject(card=card)


def asked(rows: Sequence[Row], meta: Meta) -> list[Row]:
    """The timed cases of runs whose question this is; none of a single backend."""
    mine = [row for row in ours(rows, meta) if ASKED in question(meta[row["run"]]).lower()]
    timed = [row for row in mine if row["device"] == "cuda" and row["achieved_flops_per_s"]]
    return timed if len(backends(timed)) > 1 else []


def _speeds(timed: Sequence[Row], meta: Meta) -> Iterator[Speed]:
    for group in groups(timed, "seq_len", following=True):
        longest = group.by_length[max(group.lengths)]
        base = next((row for row in longest if row["backend"] == timed[0]["backend"]), None)
        for row in longest:
            known, name = peaks(meta[row["run"]], row["dtype"]), row["backend"]
            rate, peak = row["achieved_flops_per_s"], known.flops_per_s if known else 0.0
            time = time_ratio(row, base) if base and base is not row else None
            yield Speed(group.label, name, row, rate, peak, time)


def _rates(found: Sequence[Speed]) -> Iterator[str]:
    """`Forward pass: triton reaches 702 TFLOP/s, sdpa:cudnn 662 and sdpa:flash 346.`"""
    for passes, some in by(found, lambda one: one.row["passes"]).items():
        by_name = by(some, lambda one: one.name)
        best = {name: max(one.flops_per_s for one in mine) for name, mine in by_name.items()}
        (first, rate), *others = best.items()
        rest = [f"{name} {number_text(of / 1e12)}" for name, of in others]
        texts = [f"{first} reaches {number_text(rate / 1e12)} TFLOP/s", *rest]
        yield f"{capital(axis_text('passes', passes))}: {list_text(texts)}."


def _against(found: Sequence[Speed]) -> Iterator[str]:
    """`triton is faster than sdpa:cudnn in 1 of 8 problems, slower in 4, not confirmed in 3.`"""
    for name, some in by(found, lambda one: one.name).items():
        words = [one.time.word for one in some if one.time]
        told = [word for word in SIDES if word in words]
        for word in told[:1]:
            first = f"{SIDES[word][0]} {name} in {words.count(word)} of"
            rest = [f"{SIDES[one][1]} in {words.count(one)}" for one in told[1:]]
            text = ", ".join([f"{first} {plural(len(words), 'problem')}", *rest])
            yield f"{found[0].name} is {text}."


def _bars(found: Sequence[Speed], title: str, *, framed: bool) -> Bars:
    fastest = max(one.flops_per_s for one in found)  # the longest bar, if there are no frames
    bars, lines = dict[str, list[Bar]](), list[tuple[str, ...]]()
    for one in found:
        share = one.flops_per_s / (one.peak_flops_per_s if framed else fastest)
        texts = [rate_text(one.flops_per_s), *([share_text(share)] if framed else [])]
        lines.append((one.problem, one.name, *texts))
        bar = Bar(backend=one.name, label=one.name, share=min(1.0, share), note=", ".join(texts))
        bars.setdefault(one.problem, []).append(bar)
    columns = ("problem", "backend", "achieved", *(["share of the peak"] if framed else []))
    return Bars(
        title=title,
        caption="",
        description=f"{title}: bars of FLOP/s. The table has every number.",
        groups=tuple((name, tuple(some)) for name, some in bars.items()),
        table=Table(title=title, columns=columns, rows=tuple(lines)),
        framed=framed,
    )


def _beside(found: Sequence[Speed]) -> Table:
    times = {case_key(one.row): one.time for one in found if one.time}
    problems = by(found, lambda one: one.problem).items()
    lines = [((name,), [one.row for one in some if one.time]) for name, some in problems]

    def cell(row: Row, _: Sequence[Row]) -> str:
        time = times[case_key(row)]
        return f"{time.mark.sign}\u00a0×{number_text(time.value)}{ASIDE}{time.bounds}"

    return by_backend("", [f"time over that of {found[0].name}"], lines, cell)
