"""The claims that exact bytes and FLOPs answer, which have no noise: C1, C3a and C3b."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isnan
from typing import Any

from ..contrasts import Contrast, against_one_head, share_width
from ..data.polynomial import bytes_over_n, coefficient_text
from ..data.row_groups import Group, Row, backends, groups
from ..formatting import bytes_text, number_text, plural
from ..words import SAME_RATIO
from .statement import Measured, claim
from .verdict import Evidence, agreed, exactly, first_texts

ITEM_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
MATERIALISING = "fused"
TEXTBOOK_N = 10_000
HEADS = "heads: [1, 2, 8, ...] with contrast: [heads]"


@claim(
    "C1",
    "The score matrix takes B h N² e bytes; at N = 10 000 it has 10⁸ elements per head.",
    tested=(
        "N² coefficient of the exact peak of fused, solved in integers: 2 B h e, for scores and"
        " weights"
    ),
    needs="fused, forward, not causal, four lengths or more",
    numbers=first_texts,
)
def score_matrix(run: Measured) -> Iterator[Evidence]:
    """Two score matrices are alive at the peak of `fused` without gradients."""
    wanted = {"backend": MATERIALISING, "passes": "forward", "causal": False, "mask": "none"}
    plain = [row for row in run.rows if all(row[name] == is_ for name, is_ in wanted.items())]
    solved = [
        (group, found)
        for group in groups(plain, "seq_len")
        if (found := bytes_over_n(group.rows, MATERIALISING)) is not None
        and group.problem["kv_seq_len"] == "N"
        and group.problem["dtype"] in ITEM_BYTES
    ]
    for place, (group, found) in enumerate(solved):
        item = ITEM_BYTES[group.problem["dtype"]]
        claimed = 2 * group.problem["batch"] * group.problem["heads"] * item
        text = f"{coefficient_text(found.quadratic)} bytes per N², where 2 B h e is {claimed}"
        text += f" ({group.label})" if group.label else ""
        if not found.exact:
            yield Evidence(MATERIALISING, "inconclusive", f"{text}, but no fourth length agrees")
            continue
        if found.quadratic == claimed and place == 0:
            elements = f"{TEXTBOOK_N**2:,}".replace(",", "\u00a0")
            size = f"{elements} elements, {bytes_text(TEXTBOOK_N**2 * item)}"
            text += f", so one head's matrix has {size} at N = {TEXTBOOK_N}"
        yield Evidence(MATERIALISING, exactly(found.quadratic == claimed), text)


@claim(
    "C3a",
    "h heads of width d/h need the FLOPs of one head of width d.",
    tested="exact count over h",
    needs=HEADS,
)
def flops_of_heads(run: Measured) -> Iterator[Evidence]:
    counts = [
        {row["heads"]: row["work_flops"] for row in group.rows if row.get("work_flops")}
        for group in groups(run.rows, "heads")
        if share_width(group)
    ]
    if counts := [by_heads for by_heads in counts if 1 in by_heads and len(by_heads) > 1]:
        equal = [len(set(by_heads.values())) == 1 for by_heads in counts]
        most = max(heads for by_heads in counts for heads in by_heads)
        text = f"the same count for h = 1 to {most}" if all(equal) else "the count changes with h"
        text += f", on {plural(len(counts), 'problem')}"
        yield Evidence("every backend", agreed(map(exactly, equal)), text)


@claim(
    "C3b",
    "... and the memory of one head.",
    tested=(
        "N² coefficient of the exact peak with h heads against one; with too few lengths, the peaks"
        " within 5 %"
    ),
    needs=f"{HEADS}, four lengths or more",
    numbers=first_texts,
)
def memory_of_heads(run: Measured) -> Iterator[Evidence]:
    found = {backend: list(_of_coefficients(run.rows, backend)) for backend in backends(run.rows)}
    without = against_one_head([row for row in run.rows if not found[row["backend"]]])
    for backend, evidence in found.items():
        yield from evidence or _of_peaks(without, backend)


def _of_coefficients(rows: Sequence[Row], backend: str) -> Iterator[Evidence]:
    """Per problem except N and h, the exact N² coefficient of the worst h against that of one."""
    together: dict[tuple[Any, ...], dict[int, Fraction]] = {}
    for group in groups([row for row in rows if row["backend"] == backend], "seq_len"):
        found, of = bytes_over_n(group.rows, backend), group.problem
        if found is not None and found.exact and share_width(group):
            rest = tuple(value for axis, value in of.items() if axis != "heads")
            where = f"{of['passes']}, {of['scope']}"
            together.setdefault((where, *rest), {})[of["heads"]] = found.quadratic
    for (where, *_), by_heads in together.items():
        if 1 in by_heads and len(by_heads) > 1:
            one = by_heads.pop(1)
            most, heads = max((found, heads) for heads, found in by_heads.items())
            text = (
                f"{coefficient_text(most)} bytes per N² with {heads} heads,"
                f" {coefficient_text(one)} with one, {where}"
            )
            yield Evidence(backend, exactly(most <= one), text)


def _of_peaks(compared: Sequence[tuple[Group, list[Contrast]]], backend: str) -> Iterator[Evidence]:
    for group, costs in compared:
        mine = [one for one in costs if one.backend == backend and not isnan(one.peak_bytes)]
        if mine and share_width(group):
            worst = max(mine, key=lambda cost: cost.peak_bytes)
            times = f"{number_text(worst.peak_bytes)} times the bytes of one head"
            text = f"{times} with {worst.heads} at {group.at}"
            yield Evidence(backend, exactly(worst.peak_bytes <= 1 + SAME_RATIO), text)
