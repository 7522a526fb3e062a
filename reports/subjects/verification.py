"""What verifying drafted tokens takes beside one step of decoding: speculation pays if more tokens
are accepted than it takes times as long.
"""

from collections.abc import Sequence
from itertools import starmap
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
from ..elements import note, table_of
from ..formatting import capital, list_text
from ..judging.over import paired
from ..judging.ratio import Ratio
from ..quantity import Quantity
from . import Subject

TITLE = "Verifying drafted tokens"
SECTION = "asked"
ORDER = 15
NEEDS = ("causal", "latency_ms")
MOST_DRAFTED = 64  # more queries at the end of a cache are a chunk of a prompt
OF_STEP = ("seq_len", "mask", "window", "causal_align")
MOST_NAMED = 2  # of the shapes that drafted tokens have


class Verified(NamedTuple):
    """Drafted tokens verified in one call, and `time`: of that over a step of one token."""

    row: Row
    step: Row
    time: Ratio

    @property
    def shape(self) -> str:
        """`in a chain`, `in a tree of 2 children each`."""
        if self.row["mask"] != "tree":
            return "in a chain"
        return f"in a tree of {self.row['window']} children each"


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = verifications(rows)
    if not found:
        return Subject(lacking="No drafted tokens were verified beside a step of one token.")
    axes = distinguishing_axes([one.row for one in found])
    table = table_of(
        "Drafted tokens verified, and one step",
        found,
        {
            "problem": lambda one: label(problem(one.row), axes),
            "backend": lambda one: str(one.row["backend"]),
            "drafted": lambda one: Quantity(one.row["seq_len"], "length"),
            "together": lambda one: one.shape,
            "verified": lambda one: Quantity(one.row["latency_ms"], "ms"),
            "one step": lambda one: Quantity(one.step["latency_ms"], "ms"),
            "over one step": lambda one: one.time.marked,
        },
        case=lambda one: case_key(one.row),
    )
    how = note(
        "The attention alone, over the same keys. Verifying pays if more tokens are accepted in the"
        " mean than it takes times as long, as far as attention is concerned."
    )
    alike = by(found, lambda one: (one.row["seq_len"], one.row["kv_seq_len"]))
    drafted, keys = max(alike, key=lambda of: (of[1], of[0]))
    text = finding(alike[drafted, keys])
    return Subject(
        lines=(f"{capital(text)} ({axis_text('kv_seq_len', keys)}).",), blocks=(how, table)
    )


def verifications(rows: Sequence[Row]) -> list[Verified]:
    """All of which a step of one token over the same keys was timed too."""
    timed = [
        row
        for row in rows
        if is_timed(row)
        and row.get("causal_align") == "bottom_right"
        and row["passes"] == "forward"
        and not row.get("lengths")
        and row["mask"] in ("none", "tree")
        and row["seq_len"] <= MOST_DRAFTED
    ]
    drafted = [row for row in timed if row["seq_len"] > 1]
    steps = [row for row in timed if row["seq_len"] == 1 and row["mask"] == "none"]
    apart = ["backend", *(axis for axis in AXES if axis not in OF_STEP)]
    return [*starmap(Verified, paired(drafted, steps, apart))]


def finding(alike: Sequence[Verified]) -> str:
    """`verifying 8 drafted tokens takes 1.3 times (1.2 to 1.4) the time of one step in a chain and
    1.9 times (1.7 to 2.1) the time of one step in a tree of 2 children each with sdpa`: of the
    backend that took least; the table has the others.
    """
    least = min(alike, key=lambda one: float(one.row["latency_ms"])).row
    mine = [one for one in alike if one.row["backend"] == least["backend"]]
    times = [f"{one.time.text_to('one step')} {one.shape}" for one in mine]
    return (
        f"verifying {least['seq_len']} drafted tokens takes {list_text(times, MOST_NAMED)} with"
        f" {least['backend']}"
    )
