"""C14: what a layer saves when heads are taken out, weights and all: layers of k heads of one width
against the layer of all h.
"""

from collections.abc import Sequence

from ...data.row_groups import AXES, Row, backends
from ...formatting import count_text, number_text
from .claim_verdict import Part, Verdict, by_interval, over_problems
from .studies import MARGIN_RATIO
from ..ratio import time_ratio

FOLLOWING = ("heads", "kv_heads")  # what differs between a layer and the same one with fewer heads
EQUAL = (1 / (1 + MARGIN_RATIO), 1 + MARGIN_RATIO)


def head_pruning(rows: Sequence[Row]) -> list[Part]:
    """Time and bytes, each over the share of the heads that are left: 1 where the cost goes down in
    proportion.
    """
    parts = []
    for backend in backends(rows):
        times: list[tuple[Verdict, str]] = []
        sizes: list[tuple[Verdict, str]] = []
        for whole, pruned in _pairs([row for row in rows if row["backend"] == backend]):
            share = pruned["heads"] / whole["heads"]
            left = (
                f"{pruned['heads']} of {whole['heads']} heads at N = {count_text(whole['seq_len'])}"
            )
            if ratio := time_ratio(pruned, whole):
                verdict = by_interval(ratio.low / share, ratio.high / share, EQUAL)
                times.append((verdict, f"{left}: {ratio.text} the time"))
            if pruned.get("peak_bytes") and whole.get("peak_bytes"):
                size = pruned["peak_bytes"] / whole["peak_bytes"]
                sizes.append(
                    (
                        by_interval(size / share, size / share, EQUAL),
                        f"{left}: {number_text(size)} times the bytes",
                    )
                )
        for quantity, found in (("time", times), ("bytes", sizes)):
            if found:
                parts.append(
                    Part(
                        of=f"{backend}, {quantity}",
                        verdict=over_problems(v for v, _ in found),
                        numbers=_told(found),
                    )
                )
    return parts


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Layers that are alike but for their heads, each with the one that has most. Heads of a width
    that follows from their number are no pruned ones: taking heads out leaves the width of the
    others as it is."""
    alike: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["scope"] == "layer" and row["heads"] and row["kv_heads"] == row["heads"]:
            alike.setdefault(
                tuple(row.get(axis) for axis in AXES if axis not in FOLLOWING), []
            ).append(row)
    found = []
    for members in alike.values():
        whole = max(members, key=lambda row: row["heads"])
        found += [(whole, row) for row in members if row["heads"] < whole["heads"]]
    return found


def _told(found: list[tuple[Verdict, str]]) -> str:
    """The one that has most to say: the last that refutes, else the last."""
    return next((said for verdict, said in reversed(found) if verdict == "refuted"), found[-1][1])
