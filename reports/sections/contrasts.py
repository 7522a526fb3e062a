"""What a setting costs against another one: passes, masks, shared heads, formats, scopes, sizes."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.contrasts import (
    Contrast,
    Contrasted,
    answer,
    contrasted,
    setting,
    time_word,
)
from ..analysis.heads import MARGIN_RATIO
from ..data.row_groups import Group, axis_title, backends, case_key, label, records
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import number_text, plural, time_text

TITLE = "Contrasts"
ORDER = 32
NEEDS = ("latency_ms", "peak_bytes", "work_flops")
MOST_ROWS = 120  # of one table
NAMES = {
    "passes": "Passes",
    "mask": "Mask",
    "causal": "Causal",
    "kv_heads": "Key and value heads",
    "heads": "Heads of one width",
    "kv_seq_len": "Key and value length",
    "dtype": "Number format",
    "window": "Window",
    "scope": "Core, layer and block",
    "d_model": "Width of the model",
    "d_k": "Width of a head",
    "batch": "Batch",
}


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = contrasted(records(frame), meta)
    if not found:
        yield note(
            "There is nothing to compare: no axis beside N and h has two values that were measured"
            " on an otherwise equal problem."
        )
        return
    yield note(
        "Every ratio is to the first value of the axis in the plan, for the same backend on the"
        " otherwise equal problem. Times are paired block by block if both were measured in the"
        " same blocks (contrast), else marked as unpaired. One word says what the interval decides:"
        f" same within {100 * MARGIN_RATIO:g} %, more, less, or undecided. Bytes, FLOPs and"
        " exponentials are counted."
    )
    several = len(meta) > 1
    for one in found:
        yield from _sentences(one, several=several)
        yield _table(one, several=several)
        if (left := sum(len(some) for _, some in one.problems) - MOST_ROWS) > 0:
            yield note(f"{plural(left, 'more ratio')}: attnbench export has every row.")


def _sentences(of: Contrasted, *, several: bool) -> Iterator[Text]:
    """Of every backend if the scenario asks for this axis, else of the leading one."""
    every = backends(one.row for _, some in of.problems for one in some)
    names = [of.lead, *(name for name in every if name != of.lead)] if of.asked else [of.lead]
    prefix = f"For {of.run}: " if several else ""
    for name in names:
        if text := answer(of, name):
            yield Text(text=f"{prefix}{text}.")


def _table(of: Contrasted, *, several: bool) -> Table:
    lines = [(group, one) for group, some in of.problems for one in some][:MOST_ROWS]
    title = f"{NAMES[of.axis]}: ratios to {setting(of.axis, lines[0][1].base)}"
    return Table(
        title=title + (f", {of.run}" if several else ""),
        columns=(
            "problem",
            "backend",
            axis_title(of.axis),
            "time",
            "time ratio",
            "word",
            "peak bytes",
            "inputs",
            "FLOPs",
            "exponentials",
        ),
        rows=tuple(_cells(group, one) for group, one in lines),
        cases={(place, 1): case_key(one.row) for place, (_, one) in enumerate(lines)},
        folded=not of.asked,
    )


def _cells(group: Group, one: Contrast) -> tuple[str, ...]:
    found = one.same_time
    ratio = "" if found is None else found.ratio.text
    counted = (one.peak_bytes, one.input_bytes, one.work_flops, one.work_exps)
    return (
        group.label or label(group.problem, ["seq_len"]),
        one.backend,
        setting(one.axis, one.row),
        time_text(one.row.get("latency_ms")) or one.missing,
        ratio,
        time_word(found) or "",
        *map(number_text, counted),
    )
