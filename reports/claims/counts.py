"""The claims that exact bytes and FLOPs answer, which have no noise: C1, C3a and C3b."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isnan
from typing import Any

from ...harness.rows.findings import HeadFlops
from ..contrasts import Contrast, against_one_head, share_width
from ..data.polynomial import bytes_over_n, coefficient_text
from ..data.row_groups import Group, Row, backends, by, groups
from ..formatting import bytes_text, length_text, number_text
from ..words import SAME_RATIO
from .statement import Measured, claim
from .verdict import Evidence, exactly

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
)
def score_matrix(run: Measured) -> Iterator[Evidence]:
    """Two score matrices are alive at the peak of `fused` without gradients."""
    wanted = {"backend": MATERIALISING, "passes": "forward", "causal": False, "mask": "none"}
    plain = [row for row in run.rows if all(row[name] == is_ for name, is_ in wanted.items())]
    for group in groups(plain, "seq_len"):
        found, of = bytes_over_n(group.rows, MATERIALISING), group.problem
        if found is None or of["kv_seq_len"] != "N" or of["dtype"] not in ITEM_BYTES:
            continue
        item = ITEM_BYTES[of["dtype"]]
        claimed = 2 * of["batch"] * of["heads"] * item
        text = f"{coefficient_text(found.quadratic)} bytes per N², where 2 B h e is {claimed}"
        text += f" ({group.label})" if group.label else ""
        verdict = exactly(found.quadratic == claimed)
        if not found.exact:
            verdict = "not decided"
            text += ", but no fourth length agrees"
        elif verdict == "supported":
            size = f"{length_text(TEXTBOOK_N**2)} elements, {bytes_text(TEXTBOOK_N**2 * item)}"
            text += f", so one head's matrix has {size} at N = {TEXTBOOK_N}"
        yield Evidence(MATERIALISING, verdict, text)


@claim(
    "C3a",
    "h heads of width d/h need the FLOPs of one head of width d.",
    tested="FLOPs of a layer over h, counted by torch while each backend runs",
    study=HeadFlops,
)
def flops_of_heads(run: Measured) -> Iterator[Evidence]:
    for backend, some in by(run.of(HeadFlops), lambda one: one.backend).items():
        counts = {one.heads: one.flops for one in some if one.flops is not None}
        if 1 not in counts or len(counts) < 2:
            yield Evidence(backend, "not run", "torch does not see what its kernel computes")
            continue
        text = ", ".join(f"{count} with {heads}" for heads, count in sorted(counts.items()))
        yield Evidence(backend, exactly(len({*counts.values()}) == 1), text)


@claim(
    "C3b",
    "... and the memory of one head.",
    tested=(
        "N² coefficient of the exact peak with h heads against one; with too few lengths, the peaks"
        " within 5 %"
    ),
    needs=f"{HEADS}, four lengths or more",
)
def memory_of_heads(run: Measured) -> Iterator[Evidence]:
    found = {backend: list(_of_coefficients(run.rows, backend)) for backend in backends(run.rows)}
    without = against_one_head([row for row in run.rows if not found[row["backend"]]])
    for backend, evidence in found.items():
        yield from evidence or _of_peaks(without, backend)


def _of_coefficients(rows: Sequence[Row], backend: str) -> Iterator[Evidence]:
    """Per problem except N and h, the exact N² coefficient of the worst h against that of one."""
    together: dict[tuple[Any, ...], dict[int, Fraction]] = {}
    mine = [row for row in rows if row["backend"] == backend]
    if len({row["kernel"] for row in mine if row.get("kernel")}) > 1:
        return  # heads that ran another kernel: peaks say so
    for group in groups(mine, "seq_len"):
        found, of = bytes_over_n(group.rows, backend), group.problem
        if found is not None and found.exact and share_width(group):
            rest = tuple(value for axis, value in of.items() if axis != "heads")
            where = f"{of['passes']}, {of['scope']}"
            together.setdefault((where, *rest), {})[of["heads"]] = found.quadratic
    for (where, *_), by_heads in together.items():
        if 1 in by_heads and len(by_heads) > 1:
            one = by_heads.pop(1)
            most, heads = max((found, heads) for heads, found in by_heads.items())
            text = f"{coefficient_text(most)} bytes per N² with {heads} heads,"
            text += f" {coefficient_text(one)} with one, {where}"
            yield Evidence(backend, exactly(most <= one), text)


def _of_peaks(compared: Sequence[tuple[Group, list[Contrast]]], backend: str) -> Iterator[Evidence]:
    for group, costs in compared:
        mine = [one for one in costs if one.backend == backend and not isnan(one.peak_bytes)]
        if mine and share_width(group):
            worst = max(mine, key=lambda cost: cost.peak_bytes)
            times = f"{number_text(worst.peak_bytes)} times the bytes of one head"
            text = f"{times} with {worst.heads} at {group.at}"
            if worst.of_heads:
                verdict = exactly(worst.peak_bytes <= 1 + SAME_RATIO)
            else:
                verdict, text = "not decided", f"{text}; {worst.kernels}"
            yield Evidence(backend, verdict, text)
