"""The claims that exact counts answer: C1, C3a and C3b. Bytes and FLOPs have no noise, so equal
means equal.
"""

from collections.abc import Sequence
from fractions import Fraction

from ...data.row_groups import Group, Row, backends, groups
from ...formatting import bytes_text, number_text
from .claim_verdict import Part, Verdict, over_problems
from ..heads import MARGIN_RATIO, HeadCost, comparable
from ..polynomial import Polynomial, through

ITEM_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
MATERIALISING = "fused"
TEXTBOOK_N = 10_000


def bytes_over_n(
    rows: Sequence[Row], backend: str, column: str = "peak_bytes"
) -> Polynomial | None:
    """The polynomial of a backend's bytes among the rows of one problem over N. Failed cases have
    no measured bytes, but predicted ones.
    """
    return through(
        {
            row["seq_len"]: int(row[column])
            for row in rows
            if row["backend"] == backend and row.get(column) is not None
        }
    )


def score_matrix(rows: Sequence[Row]) -> list[Part]:
    """C1: two score matrices are alive at the peak of `fused` without gradients, so its N^2
    coefficient is 2 B h e, to the byte.
    """
    plain = [
        row
        for row in rows
        if row["backend"] == MATERIALISING and row["passes"] == "forward" and row["causal"] is False
    ]
    outcomes: list[tuple[Verdict, str]] = []
    for group in groups(plain, "seq_len"):
        found = bytes_over_n(group.rows, MATERIALISING)
        if (
            found is None
            or group.problem["kv_seq_len"] != "N"
            or group.problem["dtype"] not in ITEM_BYTES
        ):
            continue
        item, heads, batch = (
            ITEM_BYTES[group.problem["dtype"]],
            group.problem["heads"],
            group.problem["batch"],
        )
        wanted = 2 * batch * heads * item
        elements = found.quadratic * TEXTBOOK_N**2 / (2 * batch * heads * item)
        verdict: Verdict = (
            "inconclusive"
            if not found.exact
            else "supported"
            if found.quadratic == wanted
            else "refuted"
        )
        said = (
            f"{_count(found.quadratic)} bytes per N², where 2 B h e is"
            f" {wanted}{f' ({group.label})' if group.label else ''}"
        )
        size = (
            f"{float(elements):,.0f} elements".replace(",", "\u00a0")
            + f", {bytes_text(float(elements) * item)}"
        )
        one = f", so one head's matrix has {size} at N = {TEXTBOOK_N}" if not outcomes else ""
        outcomes.append(
            (verdict, f"{said}{one}" if found.exact else f"{said}, but no fourth length agrees")
        )
    if not outcomes:
        return []
    return [
        Part(
            of=MATERIALISING,
            verdict=over_problems(verdict for verdict, _ in outcomes),
            numbers=_some([said for _, said in outcomes]),
        )
    ]


def flops_of_heads(rows: Sequence[Row]) -> list[Part]:
    """C3a: the count of FLOPs over h, where heads share d_model."""
    outcomes: list[Verdict] = []
    most = 1
    for group in groups(rows, "heads"):
        by_heads = {row["heads"]: row["work_flops"] for row in group.rows if row.get("work_flops")}
        if _share_width(group) and 1 in by_heads and len(by_heads) > 1:
            outcomes.append("supported" if len(set(by_heads.values())) == 1 else "refuted")
            most = max(most, *by_heads)
    if not outcomes:
        return []
    verdict = over_problems(outcomes)
    said = (
        f"the same count for h = 1 to {most}"
        if verdict == "supported"
        else "the count changes with h"
    )
    return [
        Part(
            of="every backend",
            verdict=verdict,
            numbers=f"{said}, on {len(outcomes)} problem{'s' if len(outcomes) > 1 else ''}",
        )
    ]


def memory_of_heads(rows: Sequence[Row]) -> list[Part]:
    """C3b: the N^2 coefficient of the peak with h heads against that with one; where it is not
    known, the peaks themselves.
    """
    whole = {backend: _coefficients(rows, backend) for backend in backends(rows)}
    without = comparable([row for row in rows if not whole[row["backend"]]])
    parts = []
    for backend, found in whole.items():
        outcomes = [_of_coefficients(by_heads, passes) for passes, by_heads in found] or _of_peaks(
            without, backend
        )
        if outcomes:
            numbers = _some([said for _, said in outcomes])
            parts.append(
                Part(
                    of=backend,
                    verdict=over_problems(verdict for verdict, _ in outcomes),
                    numbers=numbers,
                )
            )
    return parts


def _coefficients(rows: Sequence[Row], backend: str) -> list[tuple[str, dict[int, Fraction]]]:
    """Of every problem but for N and h: the passes, and the exact N^2 coefficient by h, where h = 1
    is among them.
    """
    together: dict[tuple[object, ...], tuple[str, dict[int, Fraction]]] = {}
    for group in groups([row for row in rows if row["backend"] == backend], "seq_len"):
        found = bytes_over_n(group.rows, backend)
        if found is not None and found.exact and _share_width(group):
            key = tuple(value for axis, value in group.problem.items() if axis != "heads")
            together.setdefault(key, (group.problem["passes"], {}))[1][group.problem["heads"]] = (
                found.quadratic
            )
    return [
        (passes, by_heads)
        for passes, by_heads in together.values()
        if 1 in by_heads and len(by_heads) > 1
    ]


def _of_coefficients(by_heads: dict[int, Fraction], passes: str) -> tuple[Verdict, str]:
    one, most = by_heads[1], max(by_heads)
    grown = [heads for heads, found in by_heads.items() if found > one]
    said = (
        f"{_count(by_heads[most])} bytes per N² with {most} heads, {_count(one)} with one, {passes}"
    )
    return ("refuted" if grown else "supported"), said


def _of_peaks(
    compared: Sequence[tuple[Group, list[HeadCost]]], backend: str
) -> list[tuple[Verdict, str]]:
    outcomes: list[tuple[Verdict, str]] = []
    for group, costs in compared:
        mine = [
            cost
            for cost in costs
            if cost.backend == backend and cost.heads > 1 and cost.peak_bytes == cost.peak_bytes
        ]
        if mine and _share_width(group):
            worst = max(mine, key=lambda cost: cost.peak_bytes)
            verdict: Verdict = "supported" if worst.peak_bytes <= 1 + MARGIN_RATIO else "refuted"
            said = (
                f"{number_text(worst.peak_bytes)} times the bytes of one head with {worst.heads} at"
                f" N = {group.problem['seq_len']}"
            )
            outcomes.append((verdict, said))
    return outcomes


def _share_width(group: Group) -> bool:
    """Heads are h slices of d_model, so that more heads are narrower ones."""
    return group.problem.get("d_k") == "d_model/h" and group.problem.get("d_v") == "d_model/h"


def _count(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"


def _some(said: list[str]) -> str:
    once = list(dict.fromkeys(said))
    more = f"; and {len(once) - 2} more" if len(once) > 3 else ""
    return "; ".join(once[: 2 if more else 3]) + more
