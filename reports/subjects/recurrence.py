"""A recurrent layer against attention: N sequential steps against N^2 pairs at once."""

from collections.abc import Sequence
from typing import NamedTuple

from ..data.exactness import RECURRENT
from ..data.row_groups import Group, Row, case_key, family, groups, is_timed
from ..data.run_meta import Meta
from ..elements import note, table_of
from ..quantity import Quantity
from . import Subject
from ._race import race

TITLE = "Recurrence"
SECTION = "asked"
ORDER = 46
CELL_FLOPS = {"RNN": 4, "GRU": 12, "LSTM": 16}
"""Times N d^2, of a layer from width d to width d: 2 FLOPs per multiply-add, 1, 3 or 4 gates, each
with a product for the input and one for the state (Elman 1990; Cho et al. 2014; Hochreiter and
Schmidhuber 1997)."""
# each product has two in the backward pass
PASSES_FLOPS = {"forward": 1, "backward": 2, "forward+backward": 3}


def subject(rows: Sequence[Row], meta: Meta) -> Subject:
    found = [step for group in groups(rows, "seq_len") for step in steps(group)]
    if not found:
        return Subject(lacking="No recurrent layer was timed.")
    how = note(
        "A recurrent layer does O(N d²) work in N sequential steps, attention O(N² d) in parallel."
        " By FLOPs attention is cheaper for N < d than a GRU, for N < 2 d than an LSTM, and"
        " nowhere than a plain RNN; the overhead of a step moves these points."
    )
    table = table_of(
        "The time of a step, and how fast the work is done",
        found,
        {
            "problem": lambda one: one.problem,
            "N": lambda one: Quantity(one.row["seq_len"], "length"),
            "recurrent": lambda one: f"{one.row['backend']}, {cell(one.row)}",
            "time of a step": lambda one: Quantity(one.step_ms, "ms"),
            "its rate": lambda one: Quantity(one.flops_per_s, "flops_per_s"),
            "attention": lambda one: one.attention.get("backend", ""),
            "its time per token": lambda one: Quantity(one.per_token_ms, "ms"),
            "rate of attention": lambda one: Quantity(
                one.attention.get("achieved_flops_per_s"), "flops_per_s"
            ),
        },
        case=lambda one: case_key(one.row),
        optional=("problem",),
    )
    return Subject(blocks=(how, table))


class Steps(NamedTuple):
    """A timed recurrent row, and the fastest exact attention at that N, empty if there is none."""

    problem: str
    row: Row
    attention: Row

    @property
    def step_ms(self) -> float:
        return float(self.row["latency_ms"] / self.row["seq_len"])

    @property
    def flops_per_s(self) -> float | None:
        """Of the recurrent layer's own work."""
        work_flops = flops(self.row)
        return None if work_flops is None else work_flops / self.row["latency_ms"] * 1e3

    @property
    def per_token_ms(self) -> float | None:
        of = self.attention
        return of["latency_ms"] / of["seq_len"] if of else None


def steps(group: Group) -> list[Steps]:
    recurrent = sorted(
        filter(_recurs, group.rows), key=lambda row: (row["backend"], row["seq_len"])
    )
    fastest = {n: race(here).ranking[:1] for n, here in group.by_length.items()}
    return [Steps(group.label, row, *(fastest[row["seq_len"]] or [{}])) for row in recurrent]


def flops(row: Row) -> int | None:
    """FLOPs of the recurrent layer itself; None for an unknown cell.

    The row's work_flops count attention.
    """
    per_token = CELL_FLOPS.get(cell(row))
    if per_token is None or row["passes"] not in PASSES_FLOPS:
        return None
    tokens = row["batch"] * row["seq_len"]
    return int(per_token * PASSES_FLOPS[row["passes"]] * tokens * row["d_model"] ** 2)


def cell(row: Row) -> str:
    """`GRU`; of rows that do not name their cell, the backend."""
    return str((row.get("configuration") or {}).get("cell") or row["backend"])


def _recurs(row: Row) -> bool:
    return family(row["backend"]) in RECURRENT and row.get("exactness") == "other" and is_timed(row)
