"""What a setting costs against another one: passes, masks, shared heads, formats, scopes, sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..contrasts import (
    NAMES,
    WHOLE_STEP,
    Contrast,
    asks_for,
    contrasts,
    setting,
)
from ..data.exactness import baseline
from ..data.row_groups import Group, Row, axis_text, axis_title, backends, case_key, label
from ..data.run_meta import Meta
from ..elements import Block, Card, DotPlot, DotRow, Table, Text, note
from ..formatting import (
    list_text,
    number_text,
    plural,
    ratio_range_text,
    time_text,
    times_text,
)
from ..words import SAME_RATIO
from . import Subject
from ._dots import counted, dot_table, timed

TITLE = "Contrasts"
ORDER = 15
NEEDS = ("latency_ms", "peak_bytes", "work_flops")
AXES = {
    "passes": ("Passes", "What the backward pass adds"),
    "mask": ("Mask", "What the mask costs"),
    "causal": ("Causal", "Causal against not causal"),
    "kv_heads": ("Key and value heads", "What shared key and value heads save"),
    "heads": ("Heads of one width", "What removed heads save"),
    "kv_seq_len": ("Key and value length", "What a longer cache costs"),
    "dtype": ("Number format", "What the number format changes"),
    "window": ("Window", "What the window changes"),
    "scope": ("Core, layer and block", "Core, layer and block"),
    "d_model": ("Width of the model", "What a wider model costs"),
    "d_k": ("Width of a head", "What wider heads cost"),
    "batch": ("Batch", "What a larger batch costs"),
}
"""The contrasted axes, with the titles of their table and of their card."""
SIZES = ("seq_len", "kv_seq_len", "batch", "d_model")  # sentences are about the largest
MOST_SETTINGS = 2  # of other axes, in a sentence
MOST_ROWS = 120  # of one table
Problems = Sequence[tuple[Group, Sequence[Contrast]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasted:
    """The contrasts of one axis of one run, by problem. `asked`: the scenario asks for it.

    `lead`: the backend that a sentence is about.
    """

    axis: str
    run: str
    lead: str
    asked: bool
    problems: Problems


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first axis that a scenario asks for, lines about the other ones."""
    found = contrasted(rows, meta)
    if not found:
        return Subject(
            lacking="There is nothing to compare: no axis beside N and h has two values that were"
            " measured on an otherwise equal problem."
        )
    answers = {place: answer(one) for place, one in enumerate(found) if one.asked}
    told = [place for place, text in answers.items() if text]
    how = note(
        "Every ratio is to the first value of the axis in the plan, for the same backend on the"
        " otherwise equal problem. Times are paired block by block if both were measured in the"
        " same blocks (contrast), else marked as unpaired. One word says what the interval decides:"
        f" same within {100 * SAME_RATIO:g} %, more, less, or undecided. Bytes, FLOPs and"
        " exponentials are counted."
    )
    card = _card(found[told[0]], answers[told[0]], meta) if told else None
    blocks = [block for one in found for block in _details(one, meta)]
    return Subject(
        card=card,
        lines=tuple(f"{_prefix(found[place], meta)}{answers[place]}." for place in told[1:]),
        blocks=(how, *blocks),
    )


def contrasted(rows: Sequence[Row], meta: Meta) -> list[Contrasted]:
    """Every axis with something to compare, run by run; those that a scenario asks for first."""
    found = []
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        for axis in AXES:
            if problems := contrasts(mine, axis):
                timed = {one.backend for _, some in problems for one in some if one.time}
                lead = baseline(run, [row for row in mine if row["backend"] in timed] or mine)
                found.append(
                    Contrasted(
                        axis=axis,
                        run=name,
                        lead=lead or "",
                        asked=asks_for(run, axis),
                        problems=problems,
                    )
                )
    return sorted(found, key=lambda one: not one.asked)


# ---- the answer of one axis ----------------------------------------------------------------------


def chosen(of: Contrasted) -> Problems:
    """The problems that a sentence is about: whole steps, largest sizes, two settings at most.

    Problems without a time count only if none has one.
    """
    left = [pair for pair in of.problems if any(one.time for one in pair[1])] or list(of.problems)
    left = [pair for pair in left if pair[0].problem.get("passes") == WHOLE_STEP] or left
    for axis in SIZES:
        sizes = [size for group, _ in left if isinstance(size := group.problem.get(axis), int)]
        if sizes:
            left = [pair for pair in left if pair[0].problem.get(axis) == max(sizes)]
    return left[:MOST_SETTINGS]


def last_of(some: Sequence[Contrast], backend: str) -> Contrast | None:
    """The contrast of a backend that is furthest from the first value, if possible with a time."""
    mine = [one for one in some if one.backend == backend]
    return next((one for one in reversed(mine) if one.time), mine[-1] if mine else None)


def varying(problems: Sequence[tuple[Group, Any]]) -> list[str]:
    """The axes that differ among some problems."""
    first = problems[0][0].problem if problems else {}
    return [
        axis
        for axis in first
        if any(group.problem.get(axis) != first[axis] for group, _ in problems)
    ]


def place(group: Group, axes: Sequence[str]) -> str:
    """Where among chosen problems: `in the layer`, `causal`; "" without such axes."""
    texts = []
    for axis in axes:
        if axis == "causal_align" and "causal" in axes:
            continue
        value = group.problem.get(axis)
        text = NAMES.get(axis, {}).get(str(value)) or axis_text(axis, value)
        texts.append(f"in {text}" if axis == "scope" else text)
    return ", ".join(filter(None, texts))


def answer(of: Contrasted, backend: str = "") -> str:
    """One sentence on the lead backend, or on a given one; "" if it has no such contrast.

    `forward+backward against forward at N = 1k, fused: in the core, 3.10 times the time (2.95 to
    3.25), 2.00 times the peak bytes; in the layer, 2.80 times the time (2.70 to 2.90), ...`.
    """
    name = backend or of.lead
    picked = [
        (group, one) for group, some in chosen(of) if (one := last_of(some, name)) is not None
    ]
    if not picked:
        return ""
    axes = varying(picked)
    parts = [
        ", ".join(filter(None, (place(group, axes), _time(one), _bytes(one)))) + _proportion(one)
        for group, one in picked
    ]
    group, first = picked[0]
    longest = "kv_seq_len" if of.axis != "kv_seq_len" else "seq_len"
    n = longest if isinstance(group.problem.get(longest), int) else "seq_len"
    at = axis_text(n, group.problem.get(n))
    where = f" at {at}" if at else ""
    against = f"{setting(of.axis, first.row)} against {setting(of.axis, first.base)}"
    return f"{against}{where}, {name}: {'; '.join(parts)}{_doubts([one for _, one in picked])}"


def _doubts(some: Sequence[Contrast]) -> str:
    """Why times are undecided."""
    open_ = [one.same_time.ratio for one in some if one.same_time and _is_open(one)]
    known = dict.fromkeys(ratio.noise for ratio in open_ if ratio.noise)
    text = f"; the interval allows for {list_text(list(known))}" if known else ""
    is_disturbed = any(ratio.disturbed and not ratio.noise for ratio in open_)
    return text + ("; other work disturbed most blocks" if is_disturbed else "")


def _is_open(one: Contrast) -> bool:
    return one.same_time is not None and one.same_time.word == "undecided"


def _time(one: Contrast) -> str:
    """`3.10 times the time (2.95 to 3.25)`; with a word if it is the same or undecided."""
    found = one.same_time
    if found is None:
        return f"no time to compare ({one.missing})"
    unpaired = "" if found.ratio.paired else ", unpaired"
    bounds = ratio_range_text(found.low, found.high) or " (no interval)"
    if found.word == "same":
        return f"the same time within 5 %: {number_text(found.value)} times{bounds}{unpaired}"
    text = f"{number_text(found.value)} times the time{bounds}{unpaired}"
    return f"{text}, undecided" if found.word == "undecided" else text


def _bytes(one: Contrast) -> str:
    """`2.00 times the peak bytes`; with the inputs where keys and values are shared."""
    kinds = [(one.peak_bytes, "peak bytes")]
    kinds += [(one.input_bytes, "bytes of q, k and v")] if one.axis == "kv_heads" else []
    texts = [
        f"the same {what}" if ratio == 1 else f"{times_text(ratio)} the {what}"
        for ratio, what in kinds
        if isfinite(ratio)
    ]
    return " and ".join(texts)


def _proportion(one: Contrast) -> str:
    """What a cost in proportion to the heads would be, where heads of one width are removed."""
    if one.axis != "heads" or not one.base["heads"]:
        return ""
    return f" ({number_text(one.row['heads'] / one.base['heads'])} would be in proportion)"


# ---- the card ------------------------------------------------------------------------------------


def _card(found: Contrasted, sentence: str, meta: Meta) -> Card:
    picked = chosen(found)
    rows = tuple(_rows(picked))
    last = last_of([one for _, some in picked for one in some], found.lead)
    assert last is not None  # the sentence is about it
    against = f"{setting(found.axis, last.row)} against {setting(found.axis, last.base)}"
    run = f", {found.run}" if len(meta) > 1 else ""
    return Card(
        name="contrasts",
        title=AXES[found.axis][1],
        sentence=f"{sentence}.",
        picture=DotPlot(
            rows=rows,
            x_label=f"ratio, {against}",
            band_ratio=SAME_RATIO,
            description=(
                f"Ratios of {against} on one logarithmic axis, per backend: time with its 95 %"
                " interval, and peak bytes. The band around 1 counts as the same. The table below"
                " has every number."
            ),
            table=dot_table(f"{against}: ratios", rows, with_remarks=True),
        ),
        subtitle=f"ratios to {setting(found.axis, last.base)}{_at(picked)}{run}",
        note=_note(found, picked),
    )


def _rows(picked: Problems) -> Iterator[DotRow]:
    """In every chosen setting: time per backend, then bytes."""
    axes = varying(picked)
    for group, some in picked:
        for what in ("Time", "Peak memory"):
            for backend in backends(one.row for one in some):
                one = last_of(some, backend)
                assert one is not None
                dot = timed(one) if what == "Time" else counted(one.peak_bytes)
                missing = (one.missing if what == "Time" else "") or "no pair"
                yield DotRow(
                    group=what,
                    label=backend,
                    dot=dot,
                    missing="" if dot else missing,
                    remark=place(group, axes),
                )


def _at(picked: Problems) -> str:
    """The lengths that the chosen problems share: `, N = 1k`."""
    of = picked[0][0].problem
    known = [(axis, of.get(axis)) for axis in ("seq_len", "kv_seq_len")]
    lengths = [(axis, n) for axis, n in known if isinstance(n, int) and n > 1]
    return "".join(f", {axis_text(axis, n)}" for axis, n in lengths)


def _note(of: Contrasted, picked: Problems) -> str:
    """What is counted and equal for every backend, and how the times were measured."""
    axes = varying(picked)
    texts = []
    for name, field in (("FLOPs", "work_flops"), ("exponentials", "work_exps")):
        ratios: dict[str, str] = {}
        for group, some in picked:
            one = last_of(some, of.lead)
            if one is not None and isfinite(getattr(one, field)):
                ratios[place(group, axes)] = number_text(getattr(one, field))
        if len(set(ratios.values())) == 1:
            texts.append(f"{name} × {next(iter(ratios.values()))}")
        elif ratios:
            texts.append(f"{name} " + ", ".join(f"× {ratio} {at}" for at, ratio in ratios.items()))
    times = [one.time for _, some in picked for one in some if one.time is not None]
    paired = all(one.paired for one in times)
    how = "Times are paired block by block." if paired else "Some times are unpaired."
    more = len(of.problems) - len(picked)
    is_more = plural(more, "more problem is", "more problems are")
    rest = f" {is_more} under Contrasts." if more > 0 else ""
    return f"Counted: {list_text(texts)}. {how}{rest}" if texts else f"{how}{rest}"


# ---- details -------------------------------------------------------------------------------------


def _prefix(of: Contrasted, meta: Meta) -> str:
    return f"For {of.run}: " if len(meta) > 1 else ""


def _details(of: Contrasted, meta: Meta) -> Iterator[Block]:
    """Sentences that neither the card nor a line has, and a table."""
    every = backends(one.row for _, some in of.problems for one in some)
    for name in [name for name in every if name != of.lead] if of.asked else [of.lead]:
        if text := answer(of, name):
            yield Text(text=f"{_prefix(of, meta)}{text}.")
    lines = [(group, one) for group, some in of.problems for one in some]
    title = f"{AXES[of.axis][0]}: ratios to {setting(of.axis, lines[0][1].base)}"
    yield Table(
        title=title + (f", {of.run}" if len(meta) > 1 else ""),
        columns=(
            *("problem", "backend", axis_title(of.axis), "time", "time ratio", "word"),
            *("peak bytes", "inputs", "FLOPs", "exponentials"),
        ),
        rows=tuple(_cells(group, one) for group, one in lines[:MOST_ROWS]),
        cases={(line, 1): case_key(one.row) for line, (_, one) in enumerate(lines[:MOST_ROWS])},
        folded=not of.asked,
    )
    if len(lines) > MOST_ROWS:
        left = plural(len(lines) - MOST_ROWS, "more ratio")
        yield note(f"{left}: attnbench export has every row.")


def _cells(group: Group, one: Contrast) -> tuple[str, ...]:
    found = one.same_time
    ratios = (one.peak_bytes, one.input_bytes, one.work_flops, one.work_exps)
    return (
        group.label or label(group.problem, ["seq_len"]),
        one.backend,
        setting(one.axis, one.row),
        time_text(one.row.get("latency_ms")) or one.missing,
        found.ratio.text if found else "",
        found.word if found else "",
        *map(number_text, ratios),
    )
