"""What a prefill in chunks takes beside one in a single call.

A chunk is a case of c queries at the end of n keys, causal: those at c, 2c, ..., n together compute
what one call of n queries does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan

from ..data.row_groups import (
    AXES,
    Row,
    axis_text,
    by,
    case_key,
    is_timed,
    label,
    problem,
    varying_axes,
)
from ..data.run_meta import Meta
from ..elements import Card, Table, note, table_of
from ..formatting import bytes_text, capital, list_text, more_below, paragraph
from ..judging.pair import time_ratio
from ..judging.ratio import Ratio, summed
from ..quantity import Quantity
from . import Subject

TITLE = "Prefill in chunks"
SECTION = "asked"
ORDER = 13
NEEDS = ("causal", "latency_ms")
OF_LENGTHS = ("seq_len", "kv_seq_len", "causal_align")
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunked:
    """One backend's prefill, whole and in chunks of `size` tokens."""

    whole: Row
    chunks: Sequence[Row]
    label: str = ""

    @property
    def size(self) -> int:
        return int(self.chunks[0]["seq_len"])

    @property
    def time(self) -> Ratio:
        """All chunks together over the single call. The bounds are the sums of those of each chunk,
        as if all were off by the most to the same side.
        """
        parts = [found for row in self.chunks if (found := time_ratio(row, self.whole))]
        if len(parts) < len(self.chunks):
            return Ratio(value=nan, low=nan, high=nan, paired=False)
        return summed(parts, [1.0] * len(parts))

    @property
    def peak_bytes(self) -> int | None:
        """Of the chunk that needs most."""
        peaks = [row["peak_bytes"] for row in self.chunks if row.get("peak_bytes") is not None]
        return max(peaks) if len(peaks) == len(self.chunks) else None


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = prefills(rows)
    if not found:
        return Subject(lacking="No prefill was timed both whole and in all of its chunks.")
    alike = [*by(found, lambda one: (one.label, one.whole["seq_len"], one.size)).values()]
    first = max(alike, key=lambda some: some[0].whole["seq_len"])
    return Subject(
        card=Card(
            title=TITLE,
            sentence=f"{capital(finding(first))}.",
            picture=_table(found),
            subtitle="all chunks together over one call",
            note=paragraph(more_below(len(alike) - 1)),
        ),
        blocks=(
            note(
                "A chunk of c tokens reads all keys before it, so later chunks cost more. Together"
                " they compute the pairs of a single causal call. What they add is starting more"
                " calls, and masks that a kernel may not have built in; what they save is the peak."
            ),
        ),
    )


def prefills(rows: Sequence[Row]) -> list[Chunked]:
    """Every prefill of which one call and all chunks of a size were timed."""
    timed = [row for row in rows if is_timed(row) and row.get("causal") and not row.get("lengths")]
    apart = ("backend", *(axis for axis in AXES if axis not in OF_LENGTHS))
    found = [
        one
        for alike in by(timed, lambda row: tuple(row.get(axis) for axis in apart)).values()
        for one in _of(alike)
    ]
    varying = varying_axes([problem(one.whole) for one in found])
    axes = [axis for axis in varying if axis not in OF_LENGTHS]
    return [
        Chunked(whole=one.whole, chunks=one.chunks, label=label(problem(one.whole), axes))
        for one in found
    ]


def _of(rows: Sequence[Row]) -> Iterator[Chunked]:
    wholes = [row for row in rows if row["seq_len"] == row["kv_seq_len"]]
    chunks = {
        (row["seq_len"], row["kv_seq_len"]): row
        for row in rows
        if row["seq_len"] == row["kv_seq_len"] or row["causal_align"] == "bottom_right"
    }
    for whole in wholes:
        n = whole["seq_len"]
        for size in dict.fromkeys(size for size, _ in chunks if size < n and n % size == 0):
            wanted = [(size, end) for end in range(size, n + 1, size)]
            if all(one in chunks for one in wanted):
                yield Chunked(whole=whole, chunks=[chunks[one] for one in wanted])


def finding(alike: Sequence[Chunked]) -> str:
    """`in chunks of 512 a prefill of N = 2k takes 1.3 times (1.2 to 1.4) the time of one call with
    sdpa and ..., and at its peak 2 MiB instead of 9 MiB with sdpa`.
    """
    first = alike[0]
    n = axis_text("seq_len", first.whole["seq_len"])
    times = [f"{one.time.text_to('one call')} with {one.whole['backend']}" for one in alike]
    text = f"in chunks of {first.size} tokens a prefill of {n} takes {list_text(times, MOST_NAMED)}"
    saved = [one for one in alike if one.peak_bytes and one.whole.get("peak_bytes")]
    if saved:
        most = max(saved, key=lambda one: one.whole["peak_bytes"] / (one.peak_bytes or 1))
        sizes = [bytes_text(most.peak_bytes), bytes_text(most.whole["peak_bytes"])]
        text += f"; {most.whole['backend']} needs {sizes[0]} at its peak instead of {sizes[1]}"
    return f"for {first.label} {text}" if first.label else text


def _table(found: Sequence[Chunked]) -> Table:
    return table_of(
        "Prefill in chunks and in one call",
        found,
        {
            "problem": lambda one: one.label,
            "N": lambda one: Quantity(one.whole["seq_len"], "count"),
            "chunk": lambda one: Quantity(one.size, "count"),
            "backend": lambda one: str(one.whole["backend"]),
            "one call": lambda one: Quantity(one.whole["latency_ms"], "ms"),
            "all chunks": lambda one: Quantity(sum(row["latency_ms"] for row in one.chunks), "ms"),
            "over one call": lambda one: one.time.marked,
            "peak of one call": lambda one: Quantity(one.whole.get("peak_bytes"), "bytes"),
            "of a chunk": lambda one: Quantity(one.peak_bytes, "bytes"),
        },
        case=lambda one: case_key(one.whole),
        optional=("problem",),
    )
