"""One step of an audited kernel: its tiles, its cycles, its schedule and what limits it.

A step is an iteration of the kernel's loop: one tile of the side that it goes through. Everything
is computed from the fields of a row; docs/method.md has the model of the cycles.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from ..data.row_groups import Row

ITEM_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
SUM_BYTES = 4  # products are summed up in fp32
WARPGROUP_WARPS = 4  # one for each quarter of an SM
TENSOR_COLUMN_BYTES = 512  # of tensor memory: 128 lanes of 32 bits (PTX ISA)
UNITS = {"tensor": "matrix products", "exponentials": "exponentials", "issue": "instructions"}
"""What a step takes of a quarter of an SM, by the names that a row's limit has for it."""
TURNS = "turns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A tile by its name in formulas; `columns` is the width of a head, or keys for scores."""

    name: str
    rows: int
    columns: int
    item_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.rows * self.columns * self.item_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Of a block of the forward kernel: `q` stays, `k` and `v` are loaded in every step."""

    q: Tile
    k: Tile
    v: Tile
    scores: Tile
    output: Tile


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Cycles that one warp's step takes of its quarter of an SM, and who shares that quarter.

    A team's warps take their step together. A block has one, or one per consumer if it is
    specialized. `team_warps`: of a team in a quarter. `overlaps`: products of a warp run during its
    own softmax. `busy_ratio`, `limit`: the bound for the tensor cores, and what gives it.
    """

    tensor: float
    exponentials: float
    issue: float
    overlaps: bool
    is_specialized: bool
    block_teams: int
    team_warps: int
    blocks: int
    busy_ratio: float
    limit: str

    @property
    def softmax(self) -> float:
        return max(self.exponentials, self.issue)

    @property
    def teams(self) -> int:
        return self.blocks * self.block_teams

    @property
    def period(self) -> float:
        """Cycles from one step of a team to its next one."""
        return self.teams * self.team_warps * self.tensor / self.busy_ratio

    @property
    def is_parallel(self) -> bool:
        """Whether a team's products run beside its softmax, by its code or by its bound."""
        return self.overlaps or self.team_warps * (self.tensor + self.softmax) > self.period + 1

    @property
    def unit_ratio(self) -> float:
        """The bound if products and softmax overlapped perfectly."""
        return self.tensor / max(self.tensor, self.softmax)

    @property
    def slowest_unit(self) -> str:
        cycles = {"tensor": self.tensor, "exponentials": self.exponentials, "issue": self.issue}
        return max(cycles, key=lambda name: cycles[name])


def tiles(row: Row) -> Tiles | None:
    """Of a forward kernel; None for another one, or if its configuration is not known."""
    queries, keys = (count_of(row["config"], name) for name in ("block_q", "block_kv"))
    d_k, d_v = count_of(row, "d_k"), count_of(row, "d_v")
    item_bytes = ITEM_BYTES.get(row["dtype"])
    if row["kernel"] != "forward" or not (queries and keys and d_k and d_v and item_bytes):
        return None
    return Tiles(
        q=Tile(name="Q", rows=queries, columns=d_k, item_bytes=item_bytes),
        k=Tile(name="K", rows=keys, columns=d_k, item_bytes=item_bytes),
        v=Tile(name="V", rows=keys, columns=d_v, item_bytes=item_bytes),
        scores=Tile(name="S", rows=queries, columns=keys, item_bytes=SUM_BYTES),
        output=Tile(name="O", rows=queries, columns=d_v, item_bytes=SUM_BYTES),
    )


def buffers(row: Row, of: Tiles) -> int:
    """How many tiles of keys and of values shared memory has room for, at most one per stage.

    0 if its size is not known, or if there is no room for one of each.
    """
    return buffer_count(row, of.k.size_bytes + of.v.size_bytes)


def buffer_count(row: Row, step_bytes: int) -> int:
    """Buffers of so many bytes, at most one per stage; 0 if there is no room for one."""
    stages = count_of(row["config"], "stages") or 1
    return min(stages, (count_of(row, "block_shared_bytes") or 0) // step_bytes)


def step(row: Row) -> Step | None:
    """None without the cycles of its loop, or if no block fits an SM."""
    cycles = {
        name: _number(row, f"loop_{name}_cycles") for name in ("tensor", "exponential", "issue")
    }
    warps, blocks = count_of(row, "block_warp_count"), count_of(row, "sm_block_count")
    if not cycles["tensor"] or None in cycles.values() or not warps or not blocks:
        return None
    groups = ceil(warps / WARPGROUP_WARPS)
    specialized = is_specialized(row) and groups > 1
    found = Step(
        tensor=cycles["tensor"],
        exponentials=cycles["exponential"] or 0.0,
        issue=cycles["issue"] or 0.0,
        overlaps=row.get("loop_overlaps") is True,
        is_specialized=specialized,
        block_teams=groups - 1 if specialized else 1,  # one group is the producer's
        team_warps=1 if specialized else groups,
        blocks=min(blocks, 32),
        busy_ratio=1.0,
        limit="tensor",
    )
    return bounded(found)


def bounded(one: Step) -> Step:
    """With the bound by its own cycles, as the audit computes it."""
    warps = one.teams * one.team_warps
    cycles = {
        "tensor": warps * one.tensor,
        "exponentials": warps * one.exponentials,
        "issue": warps * one.issue,
    }
    if not one.overlaps:
        cycles[TURNS] = one.team_warps * (one.tensor + one.softmax)
    limit = max(cycles, key=lambda name: cycles[name])
    return replace(one, busy_ratio=cycles["tensor"] / cycles[limit], limit=limit)


def with_another_block(one: Step) -> Step:
    return bounded(replace(one, blocks=one.blocks + 1))


def is_specialized(row: Row) -> bool:
    """Whether copies have warps of their own: the compiled code has more than were asked for."""
    asked, made = count_of(row["config"], "warps"), count_of(row, "block_warp_count")
    return bool(asked and made and made > asked)


def why_no_step(row: Row) -> str:
    """Why `step` is None, for a reader."""
    if row["status"] != "ok":
        return f"it was not compiled ({row.get('reason') or row['status']})"
    if row.get("sm_block_count") == 0:
        return "no block of it fits an SM"
    mix = row.get("instructions") or {}
    others = [name for name in ("HMMA", "UTCHMMA") if mix.get(name)]
    if others and not mix.get("HGMMA"):
        return f"the audit knows the cycles of HGMMA only, and its matrix products are {others[0]}"
    if mix.get("HGMMA"):
        return "the audit was made before it counted cycles, or could not; audit again"
    return "its machine code has no matrix products, or was not read"


def widths(rows: Iterable[Row]) -> dict[int, Row]:
    """By head width: the forward kernel that is tried first, of the usual dtype, if it fits an SM.

    Without masks if there is such a one.
    """
    known = [
        row
        for row in rows
        if row["kernel"] == "forward" and row["d_k"] == row["d_v"] and tiles(row) is not None
    ]
    if not known:
        return {}
    dtypes = list(ITEM_BYTES)
    dtype = min((row["dtype"] for row in known), key=dtypes.index)
    best: dict[int, Row] = {}
    for row in sorted((row for row in known if row["dtype"] == dtype), key=preference):
        best.setdefault(row["d_k"], row)
    return dict(sorted(best.items()))


def preference(row: Row) -> tuple[Any, ...]:
    """Sorts those that compiled and fit first, then by rank, then by masks."""
    unfit = row["status"] != "ok" or not row.get("sm_block_count")
    return unfit, row.get("rank", 0), bool(row.get("causal")), bool(row.get("masked"))


def count_of(of: Mapping[str, Any], name: str) -> int | None:
    """A positive whole number, or None."""
    value = of.get(name)
    return value if type(value) is int and 0 < value < 1 << 32 else None


def _number(of: Mapping[str, Any], name: str) -> float | None:
    value = of.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e9 else None
