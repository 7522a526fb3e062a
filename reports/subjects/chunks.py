"""What a prefill in chunks takes beside one in a single call.

A chunk is a case of c queries at the end of n keys, causal: those at c, 2c, ..., n together compute
what one call of n queries does.
"""

from collections.abc import Iterator, Sequence

from ..data.row_groups import AXES, Row, axis_text, by, is_timed, label, problem
from ..data.run_meta import Meta
from ..elements import Card
from ..formatting import bytes_text, list_text, more_below, paragraph
from ..judging.pair import time_ratio
from ..judging.ratio import summed
from ..quantity import Quantity
from . import Subject
from ._pairs import Pair, axes_of, pair_table

TITLE = "Prefill in chunks"
SECTION = "asked"
ORDER = 13
OF_LENGTHS = ("seq_len", "kv_seq_len", "causal_align")
MOST_NAMED = 3
HOW = (
    "Together, chunks compute the pairs of a single causal call. They add calls, and masks that a"
    " kernel may not have; their peak is that of the largest chunk."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = prefills(rows)
    if not found:
        return Subject(lacking="No prefill was timed both whole and in all of its chunks.")
    axes = axes_of(found, OF_LENGTHS)
    sizes = ("kv_seq_len", "seq_len")
    alike = by(found, lambda one: (label(problem(one.row), axes), *map(one.row.get, sizes)))
    (where, n, size), first = max(alike.items(), key=lambda some: int(some[1][0].row["kv_seq_len"]))
    times = [f"{one.time.text_to('one call')} with {one.backend}" for one in first]
    text = (
        f"A prefill of {axis_text('seq_len', n)} in chunks of {size} tokens takes"
        f" {list_text(times, MOST_NAMED)}{f' ({where})' if where else ''}"
    )
    if saved := [one for one in first if one.ratio("peak_bytes") > 0]:
        most = min(saved, key=lambda one: one.ratio("peak_bytes"))
        peaks = [bytes_text(row["peak_bytes"]) for row in (most.row, most.base)]
        text += f"; {most.backend} needs {peaks[0]} at its peak instead of {peaks[1]}"
    more = {
        "N": lambda one: Quantity(one.row["kv_seq_len"], "length"),
        "chunk": lambda one: Quantity(one.row["seq_len"], "length"),
    }
    title = "Prefill in chunks and in one call"
    return Subject(
        card=Card(
            title=TITLE,
            sentence=f"{text}.",
            picture=pair_table(title, found, "all chunks", "one call", more, OF_LENGTHS),
            subtitle="all chunks together over one call",
            note=paragraph(HOW, more_below(len(alike) - 1)),
        )
    )


def prefills(rows: Sequence[Row]) -> list[Pair]:
    """Every prefill of which one call and all chunks of a size were timed. The case is the last
    chunk with the time of all together and the highest peak. The bounds of the ratio are the sums
    of those of each chunk, as if all were off by the most to the same side.
    """
    timed = [row for row in rows if is_timed(row) and row.get("causal") and not row.get("lengths")]
    apart = ("backend", *(axis for axis in AXES if axis not in OF_LENGTHS))
    alike = by(timed, lambda row: tuple(row.get(axis) for axis in apart)).values()
    return [one for some in alike for one in _prefills(some)]


def _prefills(rows: Sequence[Row]) -> Iterator[Pair]:
    wholes = [row for row in rows if row["seq_len"] == row["kv_seq_len"]]
    chunks = {
        (row["seq_len"], row["kv_seq_len"]): row
        for row in rows
        if row["seq_len"] == row["kv_seq_len"] or row["causal_align"] == "bottom_right"
    }
    for whole in wholes:
        n = whole["seq_len"]
        for size in sorted({of for of, _ in chunks if of < n and n % of == 0}, reverse=True):
            some = [chunks.get((size, keys)) for keys in range(size, n + 1, size)]
            every = [row for row in some if row is not None]
            times = [found for row in every if (found := time_ratio(row, whole))]
            if len(every) == len(some) == len(times):
                peaks = [row.get("peak_bytes") for row in every]
                together = {
                    "latency_ms": sum(row["latency_ms"] for row in every),
                    "peak_bytes": None if None in peaks else max(filter(None, peaks), default=0),
                }
                yield Pair(every[-1] | together, whole, summed(times, [1.0] * len(times)))
