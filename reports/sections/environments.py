"""Did the upgrade slow us? The environments of a run, which took turns in the same blocks, against
the first: ratios and verdicts.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ..analysis.rows import case_key
from ..comparison import environments
from ..comparison.environments import Between, hint, place
from ..comparison.verdict import CODES, UNDECIDED, Finding
from ..comparison.verdict_text import (
    TITLES,
    ratio_text,
    severity,
    value_text,
    verdict_text,
    worth_a_line,
)
from ..data.run_meta import Meta
from ..data.row_groups import records
from ..elements import Block, Table, Text
from ..formatting import number_text

TITLE = "Between environments"
ORDER = 15
NEEDS = ("python", "session", "block_ms")
MOST_TABLE_ROWS = 200


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = environments.compared(records(frame), meta)
    if not found:
        yield Text(
            text=(
                "Everything was measured in one environment. Given --python NAME=PATH twice or"
                " more, attnbench run compares several."
            ),
            kind="note",
        )
        return
    yield Text(
        text=(
            "A ratio is the time in an environment over that in the first one: above 1 it is"
            " slower. Both took turns in the same blocks, so drift of the machine cancels. Verdicts"
            " are those of attnbench compare RUN@NAME RUN@NAME."
        ),
        kind="note",
    )
    for between in found:
        of = f" of {between.run}" if len(meta) > 1 else ""
        yield Text(text=f"{environments.finding(between)}{of}.")
        yield from _table(between, of)
        yield from _doubts(between)
    for name, run in meta.items():
        if environments.environments(run):
            yield _facts(run, f" of {name}" if len(meta) > 1 else "")


def _table(between: Between, of: str) -> Iterator[Block]:
    """Every latency, and of the rest what is not the same; the worst first."""
    shown = sorted(filter(worth_a_line, between.findings), key=severity)
    if not shown:
        return
    drawn = shown[:MOST_TABLE_ROWS]
    of_what = [] if all(one.metric == "latency" for one in shown) else ["of"]
    columns = ("case", *of_what, between.base, between.new, "ratio", "verdict")
    old, verdict = 1 + len(of_what), len(columns) - 1
    sides = (
        (line, old + is_new, (one.base, one.new)[is_new])
        for line, one in enumerate(drawn)
        for is_new in (False, True)
    )
    yield Table(
        title=f"{between.new} over {between.base}{of}",
        columns=columns,
        rows=tuple(_line(one, between, of_what=bool(of_what)) for one in drawn),
        strong=frozenset((line, verdict) for line, one in enumerate(drawn) if one.better),
        failed=frozenset((line, verdict) for line, one in enumerate(drawn) if one.worse),
        cases={
            (line, column): case_key({"run": between.run, "case": side.case})
            for line, column, side in sides
            if side is not None
        },
    )
    if len(shown) > MOST_TABLE_ROWS:
        yield Text(
            text=(
                f"{len(shown) - MOST_TABLE_ROWS} more lines, the least bad ones: attnbench compare"
                " gives them all."
            ),
            kind="note",
        )


def _line(one: Finding, between: Between, *, of_what: bool) -> tuple[str, ...]:
    values = value_text(one, is_new=False), value_text(one, is_new=True)
    return (
        place(one, between),
        *([TITLES[one.metric]] if of_what else []),
        *values,
        ratio_text(one),
        verdict_text(one),
    )


def _doubts(between: Between) -> Iterator[Block]:
    """What the codes of undecided verdicts mean, and how much may change and count as the same."""
    codes = dict.fromkeys(
        code for one in between.findings if one.verdict == UNDECIDED for code in one.reasons
    )
    if codes:
        yield from (
            Text(text=f"Undecided, {code}: {CODES[code]}{hint(code)}.", kind="note")
            for code in codes
        )
    margins = sorted(
        {
            one.margin_ratio
            for one in between.findings
            if one.metric == "latency" and one.margin_ratio == one.margin_ratio
        }
    )
    if margins:
        raised = (
            ", raised by the noise that attnbench selfcheck found here"
            if between.floor and max(margins) > 0.03
            else ""
        )
        said = " or ".join(f"{number_text(100 * margin)} %" for margin in margins)
        yield Text(
            text=f"Times that differ by up to {said} count as the same{raised}.", kind="note"
        )


def _facts(run: Mapping[str, Any], of: str) -> Block:
    """What the environments say of themselves that is not equal."""
    names, differing = list(environments.environments(run)), environments.differing(run)
    if not differing:
        return Text(
            text=(
                f"No recorded fact differs between the environments{of}: versions, settings and"
                " device are the same."
            ),
            kind="note",
        )
    rows = tuple((fact, *map(_fact, values)) for fact, values in differing.items())
    return Table(
        title=f"What differs between the environments{of}", columns=("fact", *names), rows=rows
    )


def _fact(value: Any) -> str:
    return "unknown" if value is None else value if isinstance(value, str) else json.dumps(value)
