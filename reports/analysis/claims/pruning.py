"""C14: what removing heads saves: layers of k heads of one width against the layer of all h."""

from collections.abc import Sequence

from ...data.row_groups import AXES, Row, backends
from ...formatting import count_text, number_text
from ...ratio import time_ratio
from ...words import DISTURBED
from .claim_verdict import EQUAL, Evidence, Part, by_interval, part
from .statement import Statement

DIFFERING = ("heads", "kv_heads")  # between a layer and the same layer with fewer heads


def head_pruning(rows: Sequence[Row]) -> list[Part]:
    """Time and bytes, each over the share of heads left: 1 if the cost falls in proportion."""
    parts = []
    for backend in backends(rows):
        times: list[Evidence] = []
        sizes: list[Evidence] = []
        for whole, pruned in _pairs([row for row in rows if row["backend"] == backend]):
            share = pruned["heads"] / whole["heads"]
            left = (
                f"{pruned['heads']} of {whole['heads']} heads at N = {count_text(whole['seq_len'])}"
            )
            claimed = f" ({number_text(share)} would be in proportion)"
            if ratio := time_ratio(pruned, whole):
                verdict = by_interval(ratio.low / share, ratio.high / share, EQUAL)
                verdict = "inconclusive" if ratio.disturbed else verdict
                noise = DISTURBED if ratio.disturbed else ""
                times.append((verdict, f"{left}: {ratio.text} the time{claimed}{noise}"))
            if (left_bytes := _bytes(pruned)) and (all_bytes := _bytes(whole)):
                size = left_bytes / all_bytes
                verdict = by_interval(size / share, size / share, EQUAL)
                sizes.append((verdict, f"{left}: {number_text(size)} times the bytes{claimed}"))
        for quantity, evidence in (("time", times), ("bytes", sizes)):
            parts += part(f"{backend}, {quantity}", evidence)
    return parts


def _bytes(row: Row) -> int | None:
    """With what is kept between calls; the peak alone in rows that do not know it."""
    needed: int | None = row.get("needed_bytes")
    return row.get("peak_bytes") if needed is None else needed


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Layers that differ only in their heads, each with the one that has most.

    Heads whose width follows from their number do not count: pruning keeps the width of the others.
    """
    same: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["scope"] == "layer" and row["heads"] and row["kv_heads"] == row["heads"]:
            key = tuple(row.get(axis) for axis in AXES if axis not in DIFFERING)
            same.setdefault(key, []).append(row)
    found = []
    for layers in same.values():
        whole = max(layers, key=lambda row: row["heads"])
        found += [(whole, row) for row in layers if row["heads"] < whole["heads"]]
    return found


CLAIMS: dict[str, Statement] = {
    "C14": Statement(
        statement=(
            "Removing heads saves cost in proportion. (What it does to quality: Q3 for single"
            " heads, Q19 for half of them.)"
        ),
        tested="time and bytes of a layer with k of h heads left, over k/h, within 5 %",
        to_run="scope: [layer], d_k and d_v fixed, several heads with contrast: [heads]",
        test=lambda rows, _: head_pruning(rows),
    ),
}
