"""A recurrent layer against attention: N sequential steps against N^2 pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..data.exactness import RECURRENT, is_exact
from ..data.polynomial import through
from ..data.row_groups import Group, Row, axis_text, backends, case_key, family, groups
from ..data.run_meta import Meta
from ..elements import Table, note
from ..formatting import count_text, list_text, rate_text, time_text
from . import Subject
from ._crossovers import Crossover, crossover

TITLE = "Recurrence"
ORDER = 46
NEEDS = ("exactness", "latency_ms")
CELL_FLOPS = {"GRU": 12, "LSTM": 16}
"""Times N d^2, of a layer from width d to width d: 2 FLOPs per multiply-add, 3 or 4 gates, each
with a product for the input and one for the state (Cho et al. 2014; Hochreiter and Schmidhuber
1997)."""
# each product has two in the backward pass
PASSES_FLOPS = {"forward": 1, "backward": 2, "forward+backward": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A timed recurrent row, and the fastest exact attention at that N.

    `flops_per_s` counts the recurrent layer's own work.
    """

    row: Row
    step_ms: float
    flops_per_s: float | None
    attention: Row | None


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = recurring(rows)
    if not found:
        return Subject(lacking="No recurrent layer was timed.")
    how = note(
        "A recurrent layer does O(N d²) work in N sequential steps; attention does O(N² d) in"
        " parallel. By FLOPs alone attention is cheaper while N is below about d; the overhead of a"
        " step moves that point."
    )
    return Subject(blocks=(how, _steps([(group, one) for group in found for one in steps(group)])))


def _steps(found: Sequence[tuple[Group, Steps]]) -> Table:
    rows, cases = [], {}
    for place, (group, one) in enumerate(found):
        attention, fastest = one.attention, ""
        if attention is not None:
            per_token_ms = attention["latency_ms"] / one.row["seq_len"]
            fastest = f"{attention['backend']}, {time_text(per_token_ms)}"
        cases[place, 2] = case_key(one.row)
        rows.append(
            (
                group.label or "all",
                axis_text("seq_len", one.row["seq_len"]),
                one.row["backend"],
                time_text(one.step_ms),
                rate_text(one.flops_per_s),
                fastest,
                rate_text(attention.get("achieved_flops_per_s") if attention else None),
            )
        )
    step, token = ("time of a step", "its rate"), ("fastest attention, per token", "its rate")
    return Table(
        title="The time of a step, and how fast the work is done",
        columns=("problem", "N", "recurrent", *step, *token),
        rows=tuple(rows),
        cases=cases,
    )


def recurring(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which a recurrent layer was timed."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def steps(group: Group) -> list[Steps]:
    found = []
    for row in sorted(filter(_timed, group.rows), key=lambda row: (row["backend"], row["seq_len"])):
        attention = [
            other for other in group.rows if _attends(other) and other["seq_len"] == row["seq_len"]
        ]
        work_flops = flops(row)
        found.append(
            Steps(
                row=row,
                step_ms=row["latency_ms"] / row["seq_len"],
                flops_per_s=None if work_flops is None else work_flops / row["latency_ms"] * 1e3,
                attention=min(
                    attention, key=lambda other: float(other["latency_ms"]), default=None
                ),
            )
        )
    return found


def flops(row: Row) -> int | None:
    """FLOPs of the recurrent layer itself; None for an unknown cell.

    The row's work_flops count attention.
    """
    cell = (row.get("configuration") or {}).get("cell")
    if cell not in CELL_FLOPS or row["passes"] not in PASSES_FLOPS:
        return None
    tokens = row["batch"] * row["seq_len"]
    return int(CELL_FLOPS[cell] * PASSES_FLOPS[row["passes"]] * tokens * row["d_model"] ** 2)


def even_by_flops(group: Group) -> float | None:
    """The N above which attention does more FLOPs than the recurrent layer.

    d_model for a plain layer and a GRU. None if the counts do not say.
    """
    recurrent = next((row for row in group.rows if _timed(row) and flops(row)), None)
    attention = through({row["seq_len"]: row["work_flops"] for row in group.rows})
    if recurrent is None or attention is None or attention.quadratic <= 0 or attention.constant:
        return None
    per_token = (flops(recurrent) or 0) / recurrent["seq_len"]
    return float((per_token - attention.linear) / attention.quadratic)


def crossovers(group: Group) -> list[Crossover]:
    """Each recurrent layer against every exact attention."""
    recurrent, attention = (backends(filter(these, group.rows)) for these in (_timed, _attends))
    found = [crossover(group.rows, name, other) for name in recurrent for other in attention]
    return [one for one in found if one is not None]


def finding(group: Group) -> str:
    """One sentence on the crossovers of each recurrent backend.

    `rnn is faster than fused from N = 2k on (slower up to 1k), slower than sdpa at every N from 256
    to 4k; it does fewer FLOPs above N = 512`.
    """
    found, name = crossovers(group), next(row["backend"] for row in group.rows if _timed(row))
    if not found:
        return f"{name} was timed without attention to compare with"
    texts = [f"faster than {one.against} {one.text}" for one in found if one.faster_at]
    others: dict[str, list[str]] = {}
    for one in found:
        if not one.faster_at:
            others.setdefault(_not_faster(one), []).append(one.against)
    texts += [text.format(list_text(names)) for text, names in others.items()]
    even = even_by_flops(group)
    fewer = "" if even is None else f"; it does fewer FLOPs above {_length_text(even)}"
    return f"{name} is {', '.join(texts)}{fewer}"


def _not_faster(one: Crossover) -> str:
    """With a place for the name of the other backend."""
    first, last = one.lengths[0], axis_text("seq_len", one.lengths[-1])
    if one.slower_at != one.lengths:
        return f"not clearly faster than {{}} up to {last}"
    every = f"every N from {count_text(first)} to {count_text(one.lengths[-1])}"
    return f"slower than {{}} at {every if len(one.lengths) > 1 else last}"


def _length_text(n: float) -> str:
    return f"N\u00a0=\u00a0{count_text(round(n))}"


def _timed(row: Row) -> bool:
    return (
        family(row["backend"]) in RECURRENT
        and row.get("exactness") == "other"
        and row.get("latency_ms") is not None
    )


def _attends(row: Row) -> bool:
    return is_exact(row) and row.get("latency_ms") is not None
