"""What verifying drafted tokens takes beside one step of decoding."""

from collections.abc import Sequence

from ..data.row_groups import AXES, Row, axis_text, is_timed
from ..data.run_meta import Meta
from ..elements import note
from ..formatting import list_text
from ..quantity import Quantity
from . import Subject
from ._pairs import Cells, Pair, pair_table, pairs_of

TITLE = "Verifying drafted tokens"
SECTION = "asked"
ORDER = 15
MOST_DRAFTED = 64  # more queries at the end of a cache are a chunk of a prompt
OF_STEP = ("seq_len", "mask", "window", "causal_align")
MOST_NAMED = 2  # of the shapes that drafted tokens have
HOW = (
    "Attention alone, over the same keys. Verifying pays if more tokens are accepted on average"
    " than it takes times as long."
)


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    """The sentence is about the backend that took least for most tokens over most keys."""
    found = verifications(rows)
    if not found:
        return Subject(lacking="No drafted tokens were verified beside a step of one token.")
    more: Cells = {"drafted": lambda one: Quantity(one.row["seq_len"], "length"), "together": shape}
    table = pair_table("Drafted tokens, and one step", found, "verified", "one step", more)
    most = max((one.row["kv_seq_len"], one.row["seq_len"]) for one in found)
    alike = [one for one in found if (one.row["kv_seq_len"], one.row["seq_len"]) == most]
    least = min(alike, key=lambda one: float(one.row["latency_ms"])).backend
    times = [
        f"{one.time.text_to('one step')} {shape(one)}" for one in alike if one.backend == least
    ]
    line = (
        f"{least} verifies {most[1]} drafted tokens in {list_text(times, MOST_NAMED)}"
        f" ({axis_text('kv_seq_len', most[0])})."
    )
    return Subject(lines=(line,), blocks=(note(HOW), table))


def shape(one: Pair) -> str:
    is_tree = one.row["mask"] == "tree"
    return f"in a tree of {one.row['window']} children each" if is_tree else "in a chain"


def verifications(rows: Sequence[Row]) -> list[Pair]:
    """All of which a step of one token over the same keys was timed too."""
    few = [
        row
        for row in rows
        if is_timed(row)
        and row.get("causal_align") == "bottom_right"
        and row["passes"] == "forward"
        and not row.get("lengths")
        and row["mask"] in ("none", "tree")
        and row["seq_len"] <= MOST_DRAFTED
    ]
    drafted = [row for row in few if row["seq_len"] > 1]
    steps = [row for row in few if row["seq_len"] == 1 and row["mask"] == "none"]
    return pairs_of(drafted, steps, ["backend", *(one for one in AXES if one not in OF_STEP)])
