"""What a setting costs against another one: passes, masks, shared heads, formats, scopes, sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...harness.rows.model import AXES as PROBLEM_AXES
from ..contrasts import asks_for, contrasts, of_given_width, setting
from ..data.row_groups import Row, axis_title, by
from ..data.run_meta import Meta
from ..elements import Block, Text, note
from . import Subject
from ._contrasts import Picked, Problems, card, how_compared, pick, table

TITLE = "Contrasts"
SECTION = "asked"
ORDER = 15
AXES = {
    "passes": "What the backward pass adds",
    "mask": "What the mask costs",
    "softcap": "What a softcap costs",
    "sinks": "What sinks cost",
    "causal": "Causal against not causal",
    "kv_heads": "What shared key and value heads save",
    "heads": "What removed heads save",
    "kv_seq_len": "What a longer cache costs",
    "dtype": "What the number format changes",
    "window": "What the window changes",
    "scope": "Core, layer and block",
    "d_model": "What a wider model costs",
    "d_k": "What wider heads cost",
    "batch": "What a larger batch costs",
}
"""Axes with a title of their own."""
ASKED_ONLY = ("seq_len", "lengths")  # what they cost is told by growth, and by padding
EVERY = (*AXES, *(axis for axis in PROBLEM_AXES if axis not in AXES))
MOST_ROWS = 120  # of one table


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrasted:
    """The contrasts of one axis of one run, by problem. `asked`: the scenario asks for it."""

    axis: str
    run: str
    asked: bool
    problems: Problems


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is about the first axis that a scenario asks for, lines about the other ones."""
    found = contrasted(rows, meta)
    if not found:
        return Subject(
            lacking="Nothing to compare: besides N and h no axis has two measured values on an"
            " otherwise equal problem."
        )
    asked = [one for one in found if one.asked]
    answers = [(one, picked) for one in asked for picked in _picked(one)]
    how = note(how_compared("the first value of the axis in the plan"))
    return Subject(
        card=card(_title(asked[0]), answers[0][1], asked[0].problems, meta) if asked else None,
        lines=tuple(f"{_prefix(one, meta)}{picked.answer}" for one, picked in answers[1:]),
        blocks=(how, *(block for one in found for block in _details(one, meta))),
    )


def contrasted(rows: Sequence[Row], meta: Meta) -> list[Contrasted]:
    """Every axis with something to compare, run by run; those that a scenario asks for first."""
    found = []
    for name, run in meta.items():
        mine = [row for row in rows if row["run"] == name]
        for axis in EVERY:
            asked = asks_for(run, axis)
            if (asked or axis not in ASKED_ONLY) and (problems := contrasts(mine, axis)):
                found.append(Contrasted(axis=axis, run=name, asked=asked, problems=problems))
    return sorted(found, key=lambda one: not one.asked)


# ---- one axis ------------------------------------------------------------------------------------


def _title(of: Contrasted) -> str:
    if of.axis == "heads" and not all(of_given_width(group) for group, _ in of.problems):
        return "What more heads cost"
    return AXES.get(of.axis, f"What {axis_title(of.axis)} changes")


def _picked(of: Contrasted) -> list[Picked]:
    """Of the core, the layer and the block on their own."""
    scopes = by(of.problems, lambda pair: pair[0].problem.get("scope"))
    return [pick(some, of.problems) for some in scopes.values()]


def _prefix(of: Contrasted, meta: Meta) -> str:
    return f"For {of.run}: " if len(meta) > 1 else ""


def _details(of: Contrasted, meta: Meta) -> Iterator[Block]:
    """A sentence that neither the card nor a line has, and a table."""
    for picked in () if of.asked else _picked(of):
        yield Text(text=f"{_prefix(of, meta)}{picked.answer}")
    title = f"{_title(of)}: ratios to {setting(of.axis, of.problems[0][1][0].base)}"
    run = f", {of.run}" if len(meta) > 1 else ""
    yield table(f"{title}{run}", of.axis, of.problems, folded=not of.asked, most=MOST_ROWS)
