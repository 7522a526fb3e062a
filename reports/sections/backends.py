"""Speed-up of every backend over the scenario's baseline, by problem, with intervals."""

from collections.abc import Iterator

import pandas as pd

from ..analysis.speedup import SpeedUp, baseline, finding, speed_ups
from ..data.row_groups import (
    Group,
    axis_title,
    backends,
    case_key,
    groups,
    records,
    value_text,
    varying_axes,
)
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Series, Table, note
from ..formatting import STATUS_WORDS, count_text, list_text, number_text, ratio_range_text
from ..subjects._over_n import multiples, not_drawn, panel

TITLE = "Speed-up"
ORDER = 38
NEEDS = ("latency_ms", "session", "block_ms")
MOST_FIGURES = 4
MOST_TABLE_ROWS = 200


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    rows = records(frame)
    if len(backends(rows)) < 2:
        one = "There is one backend, and nothing to compare it with."
        yield note(one if rows else "The plan has no case.")
        return
    compared = [
        (group, base)
        for group in groups(rows, "seq_len")
        if (base := baseline(meta[group.problem["run"]], group.rows))
    ]
    known = [
        (group, base)
        for group, base in compared
        if any(one.ratio is not None for one in speed_ups(group.rows, base))
    ]
    if not known:
        yield note(
            "Nothing can be compared: on no problem do the baseline and another backend have a"
            " latency."
        )
        return
    yield note(
        "Speed-up is the baseline's time over a backend's: above 1 the backend is faster. Both are"
        " on the same problem; ratios are paired block by block if both were measured in the same"
        " blocks, else marked as unpaired. Intervals are at 95 %."
    )
    over_n = [(group, base) for group, base in known if len(group.lengths) > 1]
    figures = [(group, _figure(group, base, meta)) for group, base in over_n[:MOST_FIGURES]]
    bases = list(dict.fromkeys(base for _, base in over_n))
    yield from multiples(figures, f"Speed-up against {list_text(bases)}, by problem")
    left = [group for group, _ in over_n[MOST_FIGURES:]]
    yield from not_drawn(left, "; the table has them all")
    if len(over_n) != len(known) or left:
        yield from _all(known)


def _figure(group: Group, base: str, meta: Meta) -> Figure:
    found = speed_ups(group.rows, base)
    series = [
        _series(name, [one for one in found if one.row["backend"] == name])
        for name in backends(one.row for one in found)
    ]
    return Figure(
        title=group.prefixed(finding(group, base)),
        caption=f"{caption(group.problem, meta)} · baseline {base}",
        description=(
            f"Speed-up against {base} over the sequence length N, both logarithmic, one line per"
            f" backend, with 95 % intervals as bars. The dotted line is {base} itself; points above"
            " it are faster. The table below has every number."
        ),
        panels=(
            panel(
                f"speed-up against {base}",
                "ratio",
                [one for one in series if one.x],
                line=(1, base),
            ),
        ),
        table=_table(group, base, found),
    )


def _series(backend: str, found: list[SpeedUp]) -> Series:
    known = sorted(
        (one.row["seq_len"], case_key(one.row), one.ratio) for one in found if one.ratio is not None
    )
    return Series(
        backend=backend,
        kind="measured",
        x=tuple(n for n, _, _ in known),
        y=tuple(ratio.value for _, _, ratio in known),
        low=tuple(ratio.low for _, _, ratio in known),
        high=tuple(ratio.high for _, _, ratio in known),
        cases=tuple(key for _, key, _ in known),
    )


def _table(group: Group, base: str, found: list[SpeedUp]) -> Table:
    names = backends(one.row for one in found)
    by_place = {(one.row["seq_len"], one.row["backend"]): one for one in found}
    lengths = sorted({one.row["seq_len"] for one in found})
    lines = [
        (
            count_text(n),
            *(_cell(by_place[n, name]) if (n, name) in by_place else "" for name in names),
        )
        for n in lengths
    ]
    return Table(title=f"Speed-up against {base}", columns=("N", *names), rows=tuple(lines))


def _all(compared: list[tuple[Group, str]]) -> Iterator[Block]:
    """All problems, drawn or not."""
    problems = [
        (alone, base)
        for group, base in compared
        for alone in groups(group.rows, None)
        if any(row["backend"] == base for row in alone.rows)
    ]
    axes = varying_axes([alone.problem for alone, _ in problems]) or ["seq_len"]
    names = backends(row for alone, _ in problems for row in alone.rows)
    lines = []
    for alone, base in problems[:MOST_TABLE_ROWS]:
        cells = {one.row["backend"]: _cell(one) for one in speed_ups(alone.rows, base)} | {
            base: "baseline"
        }
        lines.append(
            (
                *(value_text(axis, alone.problem[axis]) for axis in axes),
                *(cells.get(name, "") for name in names),
            )
        )
    yield Table(
        title="Speed-up per problem",
        columns=(*map(axis_title, axes), *names),
        rows=tuple(lines),
        folded=True,
    )
    if len(problems) > MOST_TABLE_ROWS:
        yield note(f"{len(problems) - MOST_TABLE_ROWS} more problems are not in this table.")


def _cell(one: SpeedUp) -> str:
    if one.ratio is None:
        failed = one.row if one.row["status"] != "ok" else one.base
        return STATUS_WORDS[failed["status"]] if failed["status"] != "ok" else "not timed"
    text = number_text(one.ratio.value) + ratio_range_text(one.ratio.low, one.ratio.high)
    return text + ("" if one.ratio.paired else ", unpaired")
