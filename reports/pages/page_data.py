"""The copy of the rows and their samples inside the page, for its script: downloads, and the
drawing of a case's samples.

Made to be small: numbers have 5 significant digits here and here only, and samples become medians
of blocks, or go, where they are many.
"""

import json
from collections.abc import Sequence
from math import floor, isfinite, log10
from statistics import median
from typing import Any

import pandas as pd

from ..data.load import NESTED_COLUMNS
from ..data.row_groups import records
from ..formatting import visible

DIGITS = 5
MOST_ALIKE = 3  # a column of names is written as numbers where each name stands so often, or more
SAID = {
    "calls": "every call, in the order in which they were taken",
    "medians": (
        "medians of the blocks, in their order: all calls together would make this page too large,"
        " and stay in the run's folder"
    ),
    "none": "not in this page, which would be too large with them; they stay in the run's folder",
}


def embedded(table: pd.DataFrame, most_bytes: int) -> str:
    """JSON that is inert in a script element: no `<`, no control characters, nothing beyond ASCII.
    Only samples are left out for room.
    """
    rows = records(table)
    columns = [name for name in table.columns if name not in (*NESTED_COLUMNS, "log_tail")]
    told = _json({name: _column([row[name] for row in rows]) for name in columns})
    kind, samples = _samples([row.get("block_ms") for row in rows], most_bytes - len(told))
    said = f"{SAID[kind]}. Numbers are rounded to {DIGITS} digits here, and only here."
    return f'{{"kind":"{kind}","samples_are":{_json(said)},"columns":{told},"samples":{samples}}}'


def _json(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _column(values: Sequence[Any]) -> Any:
    """What the rows have, and which of it each has (an empty list: all the first); or where that is
    no shorter, a value for each row.
    """
    short = [_short(value) for value in values]
    places = {
        _json(value): place for place, value in reversed(list(enumerate(short)))
    }  # JSON tells 1, 1.0 and true apart
    if len(places) == 1:
        return {"of": short[:1], "at": []}
    if len(places) > len(short) / MOST_ALIKE:
        return short
    order = sorted(places, key=places.__getitem__)
    number = {text: at for at, text in enumerate(order)}
    return {
        "of": [short[places[text]] for text in order],
        "at": [number[_json(value)] for value in short],
    }


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float | int | None:
    if not isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 10**DIGITS else short


def _samples(of_rows: list[Any], most_bytes: int) -> tuple[str, str]:
    """What they are, and as JSON: for each row [power of ten, [process][block][call] in whole
    numbers], null without samples.
    """
    for kind in ("calls", "medians"):
        text = _json([_whole(row, kind) for row in of_rows])
        if len(text) <= most_bytes:
            return kind, text
    return "none", "null"


def _whole(processes: Any, kind: str) -> list[Any] | None:
    """Milliseconds as whole numbers of 10^power, so that the smallest keeps its digits."""
    thin = [
        [block if kind == "calls" or not block else [median(block)] for block in process]
        for process in processes or []
    ]
    least = min((sample for process in thin for block in process for sample in block), default=None)
    if least is None:
        return None
    power = floor(log10(least)) - DIGITS + 1
    return [
        power,
        [
            [[round(sample / 10.0**power) for sample in block] for block in process]
            for process in thin
        ],
    ]
