"""What a setting costs against another one: passes, masks, shared heads, formats, scopes, sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..contrasts import NAMES, WHOLE_STEP, Contrast, asks_for, contrasts, setting
from ..data.exactness import baseline
from ..data.row_groups import Group, Row, axis_text, backends, varying_axes
from ..data.run_meta import Meta
from ..elements import Block, Card, Text, note
from ..formatting import capital, number_text, plural
from . import Subject
from ._contrasts import (
    Problems,
    dot_plot,
    how_compared,
    lines,
    measured_rows,
    sentence,
    table,
    why_undecided,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasted:
    """The contrasts of one axis of one run, by problem. `asked`: the scenario asks for it.

    `lead`: the backend whose setting is shown, the baseline.
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
    asked = [one for one in found if one.asked]
    how = note(how_compared("the first value of the axis in the plan"))
    return Subject(
        card=_card(asked[0], meta) if asked else None,
        lines=tuple(f"{_prefix(one, meta)}{_answer(one)}" for one in asked[1:]),
        blocks=(how, *(block for one in found for block in _details(one, meta))),
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


def _chosen(of: Contrasted) -> Problems:
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


def _picked(of: Contrasted) -> Sequence[tuple[str, list[Contrast]]]:
    """Where, and the contrast of every backend there with one setting: the furthest from the first
    value at which the lead has a time if possible.
    """
    chosen = _chosen(of)
    every = [one for _, some in chosen for one in some]
    of_lead = [one for one in every if one.backend == of.lead] or every
    last = ([one for one in of_lead if one.time] or of_lead)[-1]
    shown = setting(of.axis, last.row)
    axes = varying_axes([group.problem for group, _ in chosen])
    found = [
        (_place(group, axes), [one for one in some if setting(of.axis, one.row) == shown])
        for group, some in chosen
    ]
    return [(place, some) for place, some in found if some]


def _place(group: Group, axes: Sequence[str]) -> str:
    """Where among chosen problems: `in the layer`, `causal`; "" without such axes."""
    texts = []
    for axis in axes:
        if axis == "causal_align" and "causal" in axes:
            continue
        value = group.problem.get(axis)
        text = NAMES.get(axis, {}).get(str(value)) or axis_text(axis, value)
        texts.append(f"in {text}" if axis == "scope" else text)
    return ", ".join(filter(None, texts))


def _answer(of: Contrasted) -> str:
    """`forward+backward against forward at N = 1k. In the core: Same FLOPs. Peak memory: ×2 in
    fused. Time: more for all (×2.99 to ×3.03). In the layer: ...`
    """
    picked = _picked(of)
    first = picked[0][1][0]
    parts = [
        f"{capital(place)}: {sentence(some)}" if place else sentence(some) for place, some in picked
    ]
    if of.axis == "heads" and first.base["heads"]:
        ratio = number_text(first.row["heads"] / first.base["heads"])
        parts.append(f"In proportion to the heads it would be ×{ratio}.")
    return f"{first.against}{_at(of)}{'.' if picked[0][0] else ':'} {' '.join(parts)}"


def _at(of: Contrasted) -> str:
    """The lengths that the chosen problems share: ` at N = 1k`."""
    problem = _chosen(of)[0][0].problem
    known = [(axis, problem.get(axis)) for axis in ("seq_len", "kv_seq_len")]
    lengths = [axis_text(axis, n) for axis, n in known if isinstance(n, int) and n > 1]
    return f" at {', '.join(lengths)}" if lengths else ""


def _card(found: Contrasted, meta: Meta) -> Card:
    picked = _picked(found)
    first = picked[0][1][0]
    names = backends(one.row for _, some in picked for one in some)
    times = [one.time for _, some in picked for one in some if one.time is not None]
    more = len(found.problems) - len(picked)
    is_more = plural(more, "more problem is", "more problems are")
    paired = all(one.paired for one in times)
    notes = (
        "Times are paired block by block." if paired else "Some times are unpaired.",
        why_undecided([one for _, some in picked for one in some]),
        f"{is_more} under Contrasts." if more > 0 else "",
    )
    run = f", {found.run}" if len(meta) > 1 else ""
    return Card(
        title=AXES[found.axis][1],
        sentence=_answer(found),
        picture=dot_plot(
            tuple(row for place, some in picked for row in measured_rows(some, names, place)),
            first.against,
            with_remarks=len(picked) > 1,
        ),
        subtitle=f"ratios to {setting(found.axis, first.base)}{_at(found)}{run}",
        note=" ".join(filter(None, notes)),
    )


def _prefix(of: Contrasted, meta: Meta) -> str:
    return f"For {of.run}: " if len(meta) > 1 else ""


def _details(of: Contrasted, meta: Meta) -> Iterator[Block]:
    """A sentence that neither the card nor a line has, and a table."""
    if not of.asked:
        yield Text(text=f"{_prefix(of, meta)}{_answer(of)}")
    every = lines(of.problems)
    title = f"{AXES[of.axis][0]}: ratios to {setting(of.axis, every[0][1])}"
    run = f", {of.run}" if len(meta) > 1 else ""
    yield table(f"{title}{run}", of.axis, every[:MOST_ROWS], folded=not of.asked)
    if len(every) > MOST_ROWS:
        left = plural(len(every) - MOST_ROWS, "more line")
        yield note(f"{left}: attnbench export has every row.")
