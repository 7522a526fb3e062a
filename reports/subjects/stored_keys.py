"""What it takes to read keys and values that lie in pages, are quantized or share a prefix, beside
plain ones.
"""

from collections.abc import Sequence
from itertools import starmap
from math import isclose
from typing import NamedTuple

from ..data.row_groups import (
    AXES,
    Row,
    axis_text,
    by,
    case_key,
    distinguishing_axes,
    is_timed,
    label,
    problem,
)
from ..data.run_meta import Meta
from ..elements import Card, note, table_of
from ..formatting import bytes_text, capital, list_text
from ..judging.over import paired
from ..judging.ratio import Ratio
from ..quantity import Quantity
from . import Subject
from ._race import fastest_of

TITLE = "Pages, quantized keys and values, and shared prefixes"
SECTION = "asked"
ORDER = 13
NEEDS = ("page", "kv_dtype", "latency_ms")
WAYS = ("page", "kv_dtype", "prefix")
PLAIN = (0, "same", 0)
APART = [axis for axis in AXES if axis not in WAYS]
SAME_BYTES = 0.005  # of the ratio: a page table adds less


class Stored(NamedTuple):
    """The fastest call on keys and values that are stored in one way, over that on plain ones.

    `bytes_ratio`: of the inputs, nearly all of them keys and values.
    """

    row: Row
    plain: Row
    time: Ratio
    bytes_ratio: float

    @property
    def way(self) -> str:
        """`pages of 16 tokens`, `keys and values in int8` or both, or a shared prefix."""
        texts = (axis_text(axis, self.row[axis]) for axis in WAYS if self.row[axis] not in PLAIN)
        return " with ".join(texts)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The card is of runs that compare shared prefixes alone; in others each finding is a line."""
    found = comparisons(rows)
    if not found:
        return Subject(
            lacking="No keys and values in pages, quantized or with a shared prefix were timed"
            " beside plain ones."
        )
    axes = [axis for axis in distinguishing_axes([one.row for one in found]) if axis not in WAYS]
    table = table_of(
        "Keys and values by how they are stored",
        found,
        {
            "problem": lambda one: label(problem(one.row), axes),
            "stored": lambda one: one.way,
            "fastest": lambda one: str(one.row["backend"]),
            "time": lambda one: Quantity(one.row["latency_ms"], "ms"),
            "plain": lambda one: Quantity(one.plain["latency_ms"], "ms"),
            "by": lambda one: str(one.plain["backend"]),
            "over plain": lambda one: one.time.marked,
            "inputs over plain": lambda one: Quantity(one.bytes_ratio, "ratio"),
            "peak": lambda one: Quantity(one.row.get("peak_bytes"), "bytes"),
            "plain ": lambda one: Quantity(one.plain.get("peak_bytes"), "bytes"),
        },
        case=lambda one: case_key(one.row),
        optional=("problem",),
    )
    how = note(
        "Of each way of storing, the fastest backend that reads it, beside the fastest on plain"
        " keys and values of the same problem. How far quantized ones are off is the study"
        " kv_quantization."
    )
    told = by(found, lambda one: (one.way, place(one, axes) if one.row["prefix"] else ""))
    lines = tuple(f"{capital(sentence(some, where))}." for (_, where), some in told.items())
    if not all(one.row["prefix"] for one in found):
        return Subject(lines=lines, blocks=(how, table))
    card = Card(title="A shared prefix, stored once", sentence=" ".join(lines), picture=table)
    return Subject(card=card, blocks=(how,))


def place(one: Stored, axes: Sequence[str]) -> str:
    return label(problem(one.row), axes)


def sentence(found: Sequence[Stored], where: str) -> str:
    """Of one way, with the longest keys; of a shared prefix, `N = 1, shared prefix of 2048 tokens
    stored once with cascade takes 0.51 times (0.37 to 0.68) the time of sdpa on a copy for each of
    16 sequences, at 0.25 times the bytes (N_kv = 2560)`.
    """
    longest = max(one.row["kv_seq_len"] for one in found)
    alike = [one for one in found if one.row["kv_seq_len"] == longest]
    keys, first = axis_text("kv_seq_len", longest), alike[0]
    if not first.row["prefix"]:
        return f"{finding(alike)} ({keys})"
    base = f"{first.plain['backend']} on a copy for each of {first.row['batch']} sequences"
    time = f"{first.time.text_to(base)}{first.time.why_not_decided}"
    size = Quantity(first.bytes_ratio, "times")
    what = f"{where}, {first.way}" if where else first.way
    return (
        f"{what} stored once with {first.row['backend']} takes {time}, at {size} the bytes ({keys})"
    )


def comparisons(rows: Sequence[Row]) -> list[Stored]:
    """Every way of storing, with the plain problem that is alike in all else."""
    timed = [row for row in rows if is_timed(row) and row.get("kv_dtype") is not None]
    kinds = by(timed, lambda row: tuple(row[axis] for axis in WAYS) == PLAIN)
    ways, plain = (fastest_of(kinds.get(kind, ()), AXES) for kind in (False, True))
    return [*starmap(Stored, paired(ways, plain, APART, "input_bytes_ratio"))]


def finding(alike: Sequence[Stored]) -> str:
    """`keys and values in int8 have 0.26 times the bytes of plain ones, and a call of
    kv_cache:blocks takes 1.9 times (1.7 to 2.1) the time of plain ones, at a peak of 4 MiB instead
    of 1 KiB`.
    """
    parts = []
    for one in alike:
        text = f"a call of {one.row['backend']} takes {one.time.text_to('plain ones')}"
        peaks = [row.get("peak_bytes") for row in (one.row, one.plain)]
        if None not in peaks:
            text += ", at a peak of {} instead of {}".format(*map(bytes_text, peaks))
        parts.append(text)
    size = Quantity(alike[0].bytes_ratio, "times")
    same = isclose(alike[0].bytes_ratio, 1, abs_tol=SAME_BYTES)
    bytes_said = "as many bytes as" if same else f"{size} the bytes of"
    return f"{alike[0].way} have {bytes_said} plain ones, and {list_text(parts)}"
