"""A recurrent layer against attention: N sequential steps against N^2 pairs at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..data.exactness import RECURRENT, is_exact
from ..data.polynomial import through
from ..data.row_groups import Group, Row, axis_text, backends, case_key, family, groups
from ..data.run_meta import Meta
from ..elements import note, table_of
from ..formatting import count_text, list_text, time_text
from ..quantity import Quantity
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
    attention: Row | None

    @property
    def step_ms(self) -> float:
        return float(self.row["latency_ms"] / self.row["seq_len"])

    @property
    def flops_per_s(self) -> float | None:
        work_flops = flops(self.row)
        return None if work_flops is None else work_flops / self.row["latency_ms"] * 1e3

    @property
    def fastest(self) -> str:
        """`sdpa, 2.1 μs`."""
        of = self.attention
        return f"{of['backend']}, {time_text(of['latency_ms'] / self.row['seq_len'])}" if of else ""


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = recurring(rows)
    if not found:
        return Subject(lacking="No recurrent layer was timed.")
    how = note(
        "A recurrent layer does O(N d²) work in N sequential steps; attention does O(N² d) in"
        " parallel. By FLOPs alone attention is cheaper while N is below about d; the overhead of a"
        " step moves that point."
    )
    table = table_of(
        "The time of a step, and how fast the work is done",
        [(group, one) for group in found for one in steps(group)],
        {
            "problem": lambda of: of[0].label or "all",
            "N": lambda of: axis_text("seq_len", of[1].row["seq_len"]),
            "recurrent": lambda of: str(of[1].row["backend"]),
            "time of a step": lambda of: Quantity(of[1].step_ms, "ms"),
            "its rate": lambda of: Quantity(of[1].flops_per_s, "flops_per_s"),
            "fastest attention, per token": lambda of: of[1].fastest,
            "rate of attention": lambda of: Quantity(
                (of[1].attention or {}).get("achieved_flops_per_s"), "flops_per_s"
            ),
        },
        case=lambda of: case_key(of[1].row),
    )
    return Subject(blocks=(how, table))


def recurring(rows: Sequence[Row]) -> list[Group]:
    """Every problem over N on which a recurrent layer was timed."""
    return [group for group in groups(rows, "seq_len") if any(_timed(row) for row in group.rows)]


def steps(group: Group) -> list[Steps]:
    found = []
    for row in sorted(filter(_timed, group.rows), key=lambda row: (row["backend"], row["seq_len"])):
        here = (one for one in group.rows if _attends(one) and one["seq_len"] == row["seq_len"])
        fastest = min(here, key=lambda one: float(one["latency_ms"]), default=None)
        found.append(Steps(row=row, attention=fastest))
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
