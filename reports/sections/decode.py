"""Decode steps: the bytes that each must move, over its time, against the memory's bandwidth."""

from collections import Counter
from collections.abc import Iterator
from string import ascii_lowercase

import pandas as pd

from ..analysis.decode import finding, known_rates, notes, own_rate, own_share, timed_steps
from ..data.peaks import memory_bytes_per_s
from ..data.row_groups import (
    Row,
    case_key,
    distinguishing_axes,
    label,
    problem,
    records,
)
from ..data.run_meta import Meta, device_name
from ..elements import Block, Table, Text, note
from ..formatting import bandwidth_text, bytes_text, time_text

TITLE = "Decode and memory bandwidth"
ORDER = 45
NEEDS = ("decode_bytes_per_s", "decode_bandwidth_ratio", "decode_bandwidth_note")
MOST_ROWS = 200


def render(frame: pd.DataFrame, meta: Meta) -> Iterator[Block]:
    steps = timed_steps(records(frame))
    if not steps:
        yield note(
            "No decode step was timed: a forward pass of few queries over many keys, such as"
            " attnbench run decode measures."
        )
        return
    if known_rates(steps):
        text = finding(steps, meta)
        yield Text(text=f"{text[0].upper()}{text[1:]}.", about="decode")
    yield note(
        "A few queries read the whole cache, so memory limits a decode step. What it must move is"
        " the least that any backend can: the keys and values that the mask keeps, once for all"
        " heads that share them, the queries, and the output. These bytes over the time are its"
        " rate. 100 % is the bandwidth of a copy as attnbench doctor --calibrate measured it here:"
        " a step that reaches it does nothing but move them."
    )
    for run, device in dict.fromkeys((row["run"], row["device"]) for row in steps):
        if (whole := memory_bytes_per_s(meta[run])) is not None:
            where = device_name(meta[run], device)
            yield note(f"{where}: measured memory bandwidth of {bandwidth_text(whole)}.")
    counts = Counter(one for row in steps for one in notes(row))
    common = [one for one, count in counts.items() if count == len(steps)]
    letters = dict(zip((one for one in counts if one not in common), ascii_lowercase, strict=False))
    yield from (note(f"{one[0].upper()}{one[1:]}.") for one in common)
    yield _table(steps[:MOST_ROWS], distinguishing_axes(steps), letters)
    yield from (note(f"{letter}: {one}.") for one, letter in letters.items())
    if len(steps) > MOST_ROWS:
        yield note(f"The first {MOST_ROWS} of {len(steps)} decode steps.")


def _table(shown: list[Row], axes: list[str], letters: dict[str, str]) -> Table:
    """`letters`: of the remarks below the table. A rate has its interval if there is no share."""
    with_share = any(own_share(row) for row in shown)
    columns = ["problem", "backend", "must move", "time", "rate"]
    columns += ["of measured bandwidth"] if with_share else []
    columns += ["see"] if letters else []
    rows = tuple(
        (
            label(problem(row), axes),
            row["backend"],
            bytes_text(row.get("minimal_bytes")),
            time_text(row["latency_ms"]),
            bandwidth_text(row.get("decode_bytes_per_s")) if own_share(row) else own_rate(row),
            *([own_share(row)] if with_share else []),
            *([" ".join(letters[one] for one in notes(row) if one in letters)] if letters else []),
        )
        for row in shown
    )
    return Table(
        title="Every decode step",
        columns=tuple(columns),
        rows=rows,
        cases={(place, 1): case_key(row) for place, row in enumerate(shown)},
    )
