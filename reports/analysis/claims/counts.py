"""The claims that exact counts answer, which have no noise: C1, C3a, C3b, C6 and C15.

Two read findings of studies: C6 of head_copies, C15 of parameter_count.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ....harness.rows.findings import HeadCopy, ParameterCount, findings_of
from ...data.row_groups import Group, Row, backends, groups
from ...formatting import bytes_text, number_text, plural
from ..heads import MARGIN_RATIO, HeadCost, comparable, share_width
from ..polynomial import bytes_over_n, coefficient_text
from .claim_verdict import ClaimVerdict, Evidence, Part, agreed, part
from .statement import Statement

ITEM_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
MATERIALISING = "fused"
TEXTBOOK_N = 10_000
_HEADS = "heads: [1, 2, 8, ...] with contrast: [heads]"


def score_matrix(rows: Sequence[Row]) -> list[Part]:
    """C1: the N^2 coefficient of `fused` without gradients is 2 B h e, to the byte.

    Two score matrices are alive at its peak.
    """
    plain = [
        row
        for row in rows
        if row["backend"] == MATERIALISING
        and row["passes"] == "forward"
        and row["causal"] is False
        and row["mask"] == "none"
    ]
    evidence: list[Evidence] = []
    for group in groups(plain, "seq_len"):
        of = group.problem
        found = bytes_over_n(group.rows, MATERIALISING)
        if found is None or of["kv_seq_len"] != "N" or of["dtype"] not in ITEM_BYTES:
            continue
        item = ITEM_BYTES[of["dtype"]]
        claimed = 2 * of["batch"] * of["heads"] * item
        named = f" ({group.label})" if group.label else ""
        text = (
            f"{coefficient_text(found.quadratic)} bytes per N², where 2 B h e is {claimed}{named}"
        )
        if not found.exact:
            evidence.append(("inconclusive", f"{text}, but no fourth length agrees"))
            continue
        if not evidence and found.quadratic == claimed:
            elements = float(found.quadratic * TEXTBOOK_N**2 / claimed)
            size = f"{elements:,.0f} elements".replace(",", "\u00a0")
            size += f", {bytes_text(elements * item)}"
            text += f", so one head's matrix has {size} at N = {TEXTBOOK_N}"
        evidence.append(("supported" if found.quadratic == claimed else "refuted", text))
    return part(MATERIALISING, evidence, first_texts(evidence))


def flops_of_heads(rows: Sequence[Row]) -> list[Part]:
    """C3a: the count of FLOPs over h, where heads share d_model."""
    evidence: list[Evidence] = []
    most = 1
    for group in groups(rows, "heads"):
        by_heads = {row["heads"]: row["work_flops"] for row in group.rows if row.get("work_flops")}
        if share_width(group) and 1 in by_heads and len(by_heads) > 1:
            same = len(set(by_heads.values())) == 1
            evidence.append(("supported" if same else "refuted", ""))
            most = max(most, *by_heads)
    supported = agreed(verdict for verdict, _ in evidence) == "supported"
    text = f"the same count for h = 1 to {most}" if supported else "the count changes with h"
    return part("every backend", evidence, f"{text}, on {plural(len(evidence), 'problem')}")


def memory_of_heads(rows: Sequence[Row]) -> list[Part]:
    """C3b: the N^2 coefficient of the peak with h heads against one; if unknown, the peaks."""
    coefficients = {backend: _coefficients(rows, backend) for backend in backends(rows)}
    without = comparable([row for row in rows if not coefficients[row["backend"]]])
    parts = []
    for backend, found in coefficients.items():
        evidence = [_of_coefficients(by_heads, where) for where, by_heads in found]
        evidence = evidence or _of_peaks(without, backend)
        parts += part(backend, evidence, first_texts(evidence))
    return parts


def _coefficients(rows: Sequence[Row], backend: str) -> list[tuple[str, dict[int, Fraction]]]:
    """Per problem except N and h: passes and scope, and the exact N^2 coefficient by h.

    Only problems on which h = 1 has one.
    """
    together: dict[tuple[object, ...], tuple[str, dict[int, Fraction]]] = {}
    for group in groups([row for row in rows if row["backend"] == backend], "seq_len"):
        found = bytes_over_n(group.rows, backend)
        if found is not None and found.exact and share_width(group):
            key = tuple(value for axis, value in group.problem.items() if axis != "heads")
            where = f"{group.problem['passes']}, {group.problem['scope']}"
            _, by_heads = together.setdefault(key, (where, {}))
            by_heads[group.problem["heads"]] = found.quadratic
    return [
        (where, by_heads)
        for where, by_heads in together.values()
        if 1 in by_heads and len(by_heads) > 1
    ]


def _of_coefficients(by_heads: dict[int, Fraction], where: str) -> Evidence:
    one = by_heads[1]
    worst = max(
        (heads for heads in by_heads if heads > 1), key=lambda heads: (by_heads[heads], heads)
    )
    text = (
        f"{coefficient_text(by_heads[worst])} bytes per N² with {worst} heads,"
        f" {coefficient_text(one)} with one, {where}"
    )
    return ("refuted" if by_heads[worst] > one else "supported"), text


def _of_peaks(compared: Sequence[tuple[Group, list[HeadCost]]], backend: str) -> list[Evidence]:
    evidence: list[Evidence] = []
    for group, costs in compared:
        mine = [
            cost
            for cost in costs
            if cost.backend == backend and cost.heads > 1 and cost.peak_bytes == cost.peak_bytes
        ]
        if mine and share_width(group):
            worst = max(mine, key=lambda cost: cost.peak_bytes)
            text = (
                f"{number_text(worst.peak_bytes)} times the bytes of one head with {worst.heads} at"
                f" {group.at}"
            )
            equal = worst.peak_bytes <= 1 + MARGIN_RATIO
            verdict: ClaimVerdict = "supported" if equal else "refuted"
            evidence.append((verdict, text))
    return evidence


def first_texts(evidence: Sequence[Evidence]) -> str:
    """Up to three different texts, or two and the number of the others; first what decides."""
    verdict = agreed(verdict for verdict, _ in evidence)
    first = dict(reversed(evidence))
    decide = ("supported", "refuted") if verdict == "depends" else (verdict,)
    ordered = [first[one] for one in decide if one in first]
    texts = list(dict.fromkeys([*ordered, *(text for _, text in evidence)]))
    more = f"; and {len(texts) - 2} more" if len(texts) > 3 else ""
    return "; ".join(texts[: 2 if more else 3]) + more


def head_copies(findings: Sequence[Any]) -> list[Part]:
    """C6: the bytes that joining more than one head copies."""
    copied: dict[str, list[tuple[int, int]]] = {}
    for one in findings_of(HeadCopy, findings):
        if one.heads > 1 and one.copied_bytes is not None:
            copied.setdefault(one.layout or one.backend, []).append((one.heads, one.copied_bytes))
    parts = []
    for of, sizes in copied.items():
        heads, size = max(sizes)
        some = {bool(size) for _, size in sizes}
        verdict: ClaimVerdict = (
            "depends" if len(some) > 1 else "refuted" if True in some else "supported"
        )
        text = f"{bytes_text(size)} copied at h = {heads}"
        parts.append(Part(of=of, verdict=verdict, numbers=text))
    return parts


def parameter_count(findings: Sequence[Any]) -> list[Part]:
    """C15: whether the count rises with the heads, for each rule for the width of a head."""
    counts: dict[str, dict[int, int]] = {}
    for one in findings_of(ParameterCount, findings):
        counts.setdefault(one.d_k_rule, {})[one.heads] = one.parameter_count
    parts = []
    for rule, by_heads in counts.items():
        values = [by_heads[heads] for heads in sorted(by_heads)]
        if len(values) > 1:
            rises = all(after > before for before, after in pairwise(values))
            verdict: ClaimVerdict = (
                "supported" if rises else "refuted" if len(set(values)) == 1 else "depends"
            )
            text = f"{values[0]} at h = {min(by_heads)}, {values[-1]} at h = {max(by_heads)}"
            parts.append(Part(of=f"d_k {rule}", verdict=verdict, numbers=text))
    return parts


CLAIMS: dict[str, Statement] = {
    "C1": Statement(
        statement=(
            "The score matrix takes B h N² e bytes; at N = 10 000 it has 10⁸ elements per head."
        ),
        tested=(
            "N² coefficient of the exact peak of fused, solved in integers: 2 B h e, for scores and"
            " weights"
        ),
        to_run="fused, forward, not causal, four lengths or more",
        test=lambda rows, _: score_matrix(rows),
    ),
    "C3a": Statement(
        statement="h heads of width d/h need the FLOPs of one head of width d.",
        tested="exact count over h",
        to_run=_HEADS,
        test=lambda rows, _: flops_of_heads(rows),
    ),
    "C3b": Statement(
        statement="... and the memory of one head.",
        tested=(
            "N² coefficient of the exact peak with h heads against one; with too few lengths, the"
            " peaks within 5 %"
        ),
        to_run=f"{_HEADS}, four lengths or more",
        test=lambda rows, _: memory_of_heads(rows),
    ),
    "C6": Statement(
        statement="View and transpose join the heads without copying.",
        tested="exact bytes that joining takes, h > 1",
        to_run="studies: [head_copies]",
        test=lambda _, findings: head_copies(findings),
        study="head_copies",
    ),
    "C15": Statement(
        statement="More heads mean more parameters.",
        tested=(
            "parameters counted over h, for heads that share d_model and for heads of a fixed width"
        ),
        to_run="studies: [parameter_count]",
        test=lambda _, findings: parameter_count(findings),
        study="parameter_count",
    ),
}
