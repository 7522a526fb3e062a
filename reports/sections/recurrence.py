"""A recurrent layer against attention: latency over N for each width, and the cost of a step."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ..analysis.crossover import Crossover
from ..analysis.recurrence import Steps, crossovers, even_by_flops, finding, recurring, steps
from ..data.row_groups import Group, axis_text, backends, case_key, records
from ..data.run_meta import Meta, caption
from ..elements import Block, Figure, Table, note
from ..formatting import count_text, rate_text, time_text
from ..subjects._over_n import latency_series, not_drawn, panel

TITLE = "Recurrence"
ORDER = 46
NEEDS = ("exactness", "latency_ms")
MOST_FIGURES = 6


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = recurring(records(frame))
    if not found:
        yield note("No recurrent layer was timed.")
        return
    yield note(
        "A recurrent layer does O(N d²) work in N sequential steps; attention does O(N² d) in"
        " parallel. By FLOPs alone attention is cheaper while N is below about d; the overhead of a"
        " step moves that point."
    )
    over_n = [group for group in found if len(group.lengths) > 1]
    for group in over_n[:MOST_FIGURES]:
        yield _figure(group, meta)
    left = over_n[MOST_FIGURES:]
    yield from not_drawn(left, "; the tables have them")
    if found_crossovers := [(group, one) for group in found for one in crossovers(group)]:
        yield _crossovers(found_crossovers)
    if left or len(over_n) < len(found):
        yield _steps([(group, one) for group in found for one in steps(group)])


def _figure(group: Group, meta: Meta) -> Figure:
    timed = Group(
        label=group.label,
        problem=group.problem,
        rows=[
            row
            for row in group.rows
            if row["latency_ms"] is not None and row["exactness"] != "approximate"
        ],
    )
    names = backends(timed.rows)
    latency, per_token = (
        [latency_series(name, timed.of_backend(name), per_token=per_token) for name in names]
        for per_token in (False, True)
    )
    return Figure(
        title=group.prefixed(finding(group)),
        caption=caption(group.problem, meta),
        description=(
            "Two panels over the sequence length N, all axes logarithmic, one line per backend:"
            " latency of a call, and latency over N, which is the time of a step of the recurrent"
            " layer. Bars are 95 % intervals. The tables below have the numbers."
        ),
        panels=(panel("latency", "ms", latency), panel("latency over N", "ms", per_token)),
        table=_steps([(group, one) for one in steps(group)]),
        same_y=False,
    )


def _crossovers(found: Sequence[tuple[Group, Crossover]]) -> Table:
    rows = [
        (
            group.label or "all",
            one.backend,
            one.against,
            one.text,
            "" if (even := even_by_flops(group)) is None else f"N = {count_text(round(even))}",
        )
        for group, one in found
    ]
    return Table(
        title="From which N on a recurrent layer is clearly faster than attention",
        columns=("problem", "recurrent", "than", "faster", "fewer FLOPs above"),
        rows=tuple(rows),
    )


def _steps(found: Sequence[tuple[Group, Steps]]) -> Table:
    rows, cases = [], {}
    for place, (group, one) in enumerate(found):
        attention, fastest = one.attention, ""
        if attention is not None:
            per_token_ms = attention["latency_ms"] / one.row["seq_len"]
            fastest = f"{attention['backend']}, {time_text(per_token_ms)}"
        cases[place, 2] = case_key(one.row)
        rows.append(
            (
                group.label or "all",
                axis_text("seq_len", one.row["seq_len"]),
                one.row["backend"],
                time_text(one.step_ms),
                rate_text(one.flops_per_s),
                fastest,
                rate_text(attention.get("achieved_flops_per_s") if attention else None),
            )
        )
    step, token = ("time of a step", "its rate"), ("fastest attention, per token", "its rate")
    return Table(
        title="The time of a step, and how fast the work is done",
        columns=("problem", "N", "recurrent", *step, *token),
        rows=tuple(rows),
        cases=cases,
    )
