"""A recurrent layer beside attention: N steps one after the other against N^2 pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..data.exactness import is_exact
from ..data.row_groups import Group, Row, axis_text, backends, groups
from ..formatting import count_text, list_text
from .crossover import Overtaking, overtaking
from .polynomial import through

RECURRENT = ("rnn", "lstm")
CELL_FLOPS = {"GRU": 12, "LSTM": 16}
"""Times N d^2, of a layer from width d to width d: 2 FLOPs per multiply-add, 3 or 4 gates, each
with a product for the input and one for the state (Cho et al. 2014; Hochreiter and Schmidhuber
1997)."""
TIMES = {
    "forward": 1,
    "backward": 2,
    "forward+backward": 3,
}  # each product has two in the backward pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A timed recurrent row beside the fastest exact attention at that N, None where there is none.
    Rates are of work done by the count.
    """

    row: Row
    step_ms: float
    flops_per_s: float | None
    attention: Row | None


def recurring(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which a recurrent layer was timed."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def steps(group: Group) -> list[Steps]:
    found = []
    for row in sorted(filter(_timed, group.rows), key=lambda row: (row["backend"], row["seq_len"])):
        beside = [
            other for other in group.rows if _attends(other) and other["seq_len"] == row["seq_len"]
        ]
        work_flops = flops(row)
        found.append(
            Steps(
                row=row,
                step_ms=row["latency_ms"] / row["seq_len"],
                flops_per_s=None if work_flops is None else work_flops / row["latency_ms"] * 1e3,
                attention=min(beside, key=lambda other: float(other["latency_ms"]), default=None),
            )
        )
    return found


def flops(row: Row) -> int | None:
    """Of the recurrent layer itself; the row's work_flops are those of attention. None where its
    cell is not known.
    """
    cell = (row.get("configuration") or {}).get("cell")
    if cell not in CELL_FLOPS or row["passes"] not in TIMES:
        return None
    return int(
        CELL_FLOPS[cell]
        * TIMES[row["passes"]]
        * row["batch"]
        * row["seq_len"]
        * row["d_model"] ** 2
    )


def even_by_flops(group: Group) -> float | None:
    """The N at which attention does as many FLOPs as the recurrent layer: with N below it attention
    does fewer. d_model for a plain layer beside a GRU. None where the counts do not say."""
    recurrent = next((row for row in group.rows if _timed(row) and flops(row)), None)
    attention = through({row["seq_len"]: row["work_flops"] for row in group.rows})
    if recurrent is None or attention is None or attention.quadratic <= 0 or attention.constant:
        return None
    per_token = (flops(recurrent) or 0) / recurrent["seq_len"]
    return float((per_token - attention.linear) / attention.quadratic)


def overtakings(group: Group) -> list[Overtaking]:
    """Of each recurrent layer against every exact attention: from which N on the recurrent one is
    faster.
    """
    recurrent, attention = (backends(filter(these, group.rows)) for these in (_timed, _attends))
    found = [overtaking(group.rows, name, other) for name in recurrent for other in attention]
    return [one for one in found if one is not None]


def finding(group: Group) -> str:
    """`rnn is faster than fused from N = 2k on (slower up to 1k), not faster than sdpa up to N =
    4k; by FLOPs from N = 512 on`.
    """
    found, name = overtakings(group), next(row["backend"] for row in group.rows if _timed(row))
    if not found:
        return f"{name} was timed with no attention beside it"
    said = [f"faster than {one.against} {one.text}" for one in found if one.faster_from is not None]
    for last in sorted({one.lengths[1] for one in found if one.faster_from is None}):
        slow = [one.against for one in found if one.faster_from is None and one.lengths[1] == last]
        said.append(f"not faster than {list_text(slow)} up to {axis_text('seq_len', last)}")
    even = even_by_flops(group)
    by_flops = (
        ""
        if even is None
        else f"; it does fewer FLOPs from N\u00a0=\u00a0{count_text(round(even))} on"
    )
    return f"{name} is {', '.join(said)}{by_flops}"


def _timed(row: Row) -> bool:
    return (
        row["backend"].partition(":")[0] in RECURRENT
        and row.get("exactness") == "other"
        and row.get("latency_ms") is not None
    )


def _attends(row: Row) -> bool:
    return is_exact(row) and row.get("latency_ms") is not None
