"""The copy of rows and samples inside the page, for its script: downloads and drawings of samples.

To keep it small, numbers have 5 significant digits here, and many samples become medians of blocks
or are left out.
"""

import json
from collections.abc import Sequence
from math import floor, isfinite, log10
from statistics import median
from typing import Any

from ...harness.files.printable import visible
from ..data.columns import NESTED_COLUMNS
from ..data.load import columns_of
from ..data.row_groups import Row

DIGITS = 5
FEWEST_EQUAL = 3  # a column is encoded by its values if each occurs this often on average
SAMPLES_ARE = {
    "calls": "every call, in measuring order",
    "medians": (
        "medians of the blocks, in order: all calls together would make this page too large, and"
        " are in the run's folder"
    ),
    "none": "not in this page, which would be too large with them; they are in the run's folder",
}


def page_data(rows: Sequence[Row], most_bytes: int) -> str:
    """JSON that is safe in a script element: no `<`, no control characters, only ASCII.

    To save room, only samples are left out.
    """
    columns = [name for name in columns_of(rows) if name not in (*NESTED_COLUMNS, "log_tail")]
    values = _json({name: _column([row[name] for row in rows]) for name in columns})
    kind, samples = _samples([row.get("block_ms") for row in rows], most_bytes - len(values))
    text = f"{SAMPLES_ARE[kind]}. Numbers are rounded to {DIGITS} digits on this page only."
    return f'{{"kind":"{kind}","samples_are":{_json(text)},"columns":{values},"samples":{samples}}}'


def _json(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _column(values: Sequence[Any]) -> Any:
    """The different values, and the place of each row's value among them.

    An empty list of places: all the first. Or one value per row if that is shorter.
    """
    short = [_short(value) for value in values]
    kinds = [(type(value), value) for value in short]  # JSON tells 1, 1.0 and true apart
    places = {kind: place for place, kind in reversed(list(enumerate(kinds)))}
    if len(places) == 1:
        return {"of": short[:1], "at": []}
    if len(places) > len(short) / FEWEST_EQUAL:
        return short
    order = sorted(places, key=places.__getitem__)
    number = {kind: at for at, kind in enumerate(order)}
    return {"of": [value for _, value in order], "at": [number[kind] for kind in kinds]}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float | int | None:
    if not isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    if not isfinite(short):  # the largest floats are rounded up beyond all
        return value
    return int(short) if short == int(short) and abs(short) < 10**DIGITS else short


def _samples(of_rows: list[Any], most_bytes: int) -> tuple[str, str]:
    """Their kind, and JSON: per row [power of ten, [process][block][call] as integers] or null."""
    for kind in ("calls", "medians"):
        text = _json([_whole(row, kind) for row in of_rows])
        if len(text) <= most_bytes:
            return kind, text
    return "none", "null"


def _whole(processes: Any, kind: str) -> list[Any] | None:
    """Milliseconds as integers times 10^power, so that the smallest keeps its digits."""
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
