"""Did the other environment change the speed? Each environment of a run against the first one."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from ..comparison import environments
from ..comparison.environments import EnvironmentComparison, hint, place
from ..comparison.verdict import UNDECIDED, CaseVerdict
from ..comparison.verdict_text import (
    TITLES,
    ratio_text,
    reason_text,
    severity,
    value_text,
    verdict_text,
    worth_a_line,
)
from ..data.row_groups import case_key, records
from ..data.run_meta import Meta
from ..elements import Block, Table, Text, note
from ..formatting import number_text

TITLE = "Between environments"
ORDER = 15
NEEDS = ("python", "session", "block_ms")
MOST_TABLE_ROWS = 200


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    found = environments.compare_environments(records(frame), meta)
    if not found:
        yield note(
            "Everything was measured in one environment. attnbench run compares several if"
            " --python NAME=PATH is given twice or more."
        )
        return
    yield note(
        "A ratio is the time in an environment over that in the first one: above 1 is slower. They"
        " were measured alternately in the same blocks, so drift of the machine cancels. Verdicts"
        " are those of attnbench compare RUN@NAME RUN@NAME."
    )
    for between in found:
        of = f" of {between.run}" if len(meta) > 1 else ""
        yield Text(text=f"{environments.finding(between)}{of}.")
        yield from _table(between, of)
        yield from _doubts(between)
    for name, run in meta.items():
        if environments.environments(run):
            yield _facts(run, f" of {name}" if len(meta) > 1 else "")


def _table(between: EnvironmentComparison, of: str) -> Iterator[Block]:
    """Every latency, and other metrics that changed; worst first."""
    shown = sorted(filter(worth_a_line, between.verdicts), key=severity)
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
        yield note(
            f"{len(shown) - MOST_TABLE_ROWS} more lines, the least bad ones: attnbench compare has"
            " them all."
        )


def _line(one: CaseVerdict, between: EnvironmentComparison, *, of_what: bool) -> tuple[str, ...]:
    values = value_text(one, is_new=False), value_text(one, is_new=True)
    return (
        place(one, between),
        *([TITLES[one.metric]] if of_what else []),
        *values,
        ratio_text(one),
        verdict_text(one),
    )


def _doubts(between: EnvironmentComparison) -> Iterator[Block]:
    """What the reasons for undecided verdicts mean, and how much change counts as the same."""
    undecided = (one for one in between.verdicts if one.verdict == UNDECIDED)
    for reason in dict.fromkeys(reason for one in undecided for reason in one.reasons):
        yield note(f"Undecided, {reason}: {reason_text(reason, between.rules)}{hint(reason)}.")
    margins = {one.margin_ratio for one in between.of_latency}
    known = sorted(margin for margin in margins if margin == margin)
    if known:
        raised = (
            ", raised by the noise that attnbench selfcheck found here"
            if between.noise_floor and max(known) > 0.03
            else ""
        )
        percents = " or ".join(f"{number_text(100 * margin)} %" for margin in known)
        yield note(f"Times that differ by up to {percents} count as the same{raised}.")


def _facts(run: Mapping[str, Any], of: str) -> Block:
    """The facts that differ between the environments."""
    names, differing = list(environments.environments(run)), environments.differing(run)
    if not differing:
        return note(
            f"No recorded fact differs between the environments{of}: versions, settings and device"
            " are the same."
        )
    rows = tuple((fact, *map(_fact, values)) for fact, values in differing.items())
    return Table(
        title=f"Differences between the environments{of}", columns=("fact", *names), rows=rows
    )


def _fact(value: Any) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else json.dumps(value)
