"""Where a block keeps its tiles, as a picture: parts of registers, shared and tensor memory."""

from collections.abc import Iterator, Sequence

from ..analysis.audited_kernels import configuration
from ..analysis.kernel_step import (
    SUM_BYTES,
    TENSOR_COLUMN_BYTES,
    Tiles,
    buffers,
    count_of,
    tiles,
)
from ..data.row_groups import Row
from ..elements import Look, MemoryStore, Piece, Table, TileMap, TilePanel
from ..formatting import bytes_text, list_text, plural

MOST_BLOCKS = 8  # drawn; no forward kernel has as many
COLUMNS = ("head", "memory", "part", "of a block", "of an SM")
Part = tuple[str, Look, int]
"""A part of a block's memory: its name, look and bytes."""


def picture(rows: Sequence[Row], about: str) -> TileMap | None:
    """None if no memory of any of these kernels is known."""
    panels = tuple(panel for row in rows if (panel := _panel(row)) is not None)
    if not panels:
        return None
    first = panels[0]
    return TileMap(
        title=(
            f"A block holds {first.queries} queries and loads {first.keys} keys and values per step"
            if len({(one.queries, one.keys) for one in panels}) == 1
            else "A block holds a tile of queries and loads a tile of keys and values per step"
        ),
        caption=(
            f"{about} · areas are to scale · S: scores of the current step, O: the output so far,"
            " both in fp32 · lighter parts belong to a second block"
            if any(piece.block for one in panels for at in one.stores for piece in at.pieces)
            else f"{about} · areas are to scale · S: scores of the current step, O: the output so"
            " far, both in fp32"
        ),
        description=" ".join(map(_described, panels)),
        panels=panels,
        table=Table(
            title="The parts of each memory",
            columns=COLUMNS,
            rows=tuple((str(one.d_k), *cells) for one in panels for cells in _cells(one.stores)),
        ),
    )


def _panel(row: Row) -> TilePanel | None:
    of = tiles(row)
    stores = tuple(_stores(row, of)) if of is not None else ()
    if of is None or not stores:
        return None
    return TilePanel(
        heading=f"Heads {row['d_k']} wide",
        remark=configuration(row["config"]),
        queries=of.q.rows,
        keys=of.k.rows,
        d_k=of.q.columns,
        d_v=of.v.columns,
        causal=bool(row["causal"]),
        stores=stores,
    )


def _stores(row: Row, of: Tiles) -> Iterator[MemoryStore]:
    """Those whose size and use are known."""
    tensor_columns = count_of(row, "tensor_memory_column_count")
    sums: list[Part] = [
        ("O", "product", of.output.size_bytes),
        ("S", "softmax", of.scores.size_bytes),
    ]
    taken = count_of(row, "allocated_register_count")
    capacity = count_of(row, "sm_register_count")
    if taken and capacity:
        parts = _filled([] if tensor_columns else sums, taken * SUM_BYTES, "other values")
        yield _store("registers", capacity * SUM_BYTES, parts, row, _per_thread(row))
    taken, capacity = (
        count_of(row, name) for name in ("allocated_shared_bytes", "sm_shared_bytes")
    )
    if taken and capacity:
        loaded: list[Part] = [
            part
            for _ in range(buffers(row, of))
            for part in (("K", "load", of.k.size_bytes), ("V", "load", of.v.size_bytes))
        ]
        left = taken - sum(size for *_, size in loaded)
        own: list[Part] = [("Q", "query", of.q.size_bytes)] if left >= of.q.size_bytes else []
        yield _store("shared memory", capacity, _filled([*own, *loaded], taken, "other"), row, "")
    capacity = count_of(row, "sm_tensor_memory_column_count")
    if tensor_columns and capacity:
        parts = _filled(sums, tensor_columns * TENSOR_COLUMN_BYTES, "other")
        yield _store("tensor memory", capacity * TENSOR_COLUMN_BYTES, parts, row, "")


def _per_thread(row: Row) -> str:
    count = count_of(row, "thread_register_count")
    return f", {count} per thread" if count else ""


def _filled(parts: list[Part], taken: int, rest: str) -> list[Part]:
    """The parts and the rest of what a block takes; only the rest if they are more than that."""
    left = taken - sum(size for *_, size in parts)
    if left < 0:
        return [(rest, "rest", taken)]
    return [*parts, (rest, "rest", left)] if left else parts


def _store(name: str, capacity: int, parts: list[Part], row: Row, more: str) -> MemoryStore:
    taken = sum(size for *_, size in parts)
    blocks = min(count_of(row, "sm_block_count") or 1, MOST_BLOCKS)
    limits = row.get("block_limits") or {}
    room = limits.get(name.replace(" ", "_"))
    held = f"{bytes_text(taken)} of {bytes_text(capacity)}{more}"
    if isinstance(room, int) and 0 <= room < 1 << 32:
        held += f": {plural(room, 'block')} fit{'s' * (room == 1)}"
    return MemoryStore(
        label=name,
        capacity=max(capacity, taken * blocks),
        pieces=tuple(
            Piece(label=label, size=size, look=look, block=block)
            for block in range(blocks)
            for label, look, size in parts
        ),
        note=held,
    )


def _parts(store: MemoryStore) -> dict[str, float]:
    """Bytes of one block by the name of the part."""
    found: dict[str, float] = {}
    for piece in store.pieces:
        if not piece.block:
            found[piece.label] = found.get(piece.label, 0) + piece.size
    return found


def _cells(stores: Sequence[MemoryStore]) -> Iterator[tuple[str, ...]]:
    for store in stores:
        for label, size in _parts(store).items():
            yield store.label, label, bytes_text(size), bytes_text(store.capacity)


def _described(panel: TilePanel) -> str:
    held = (
        f"{store.label}: "
        + list_text([f"{label} {bytes_text(size)}" for label, size in _parts(store).items()])
        + f" ({store.note})"
        for store in panel.stores
    )
    return (
        f"{panel.heading}: a block holds {panel.queries} queries and passes over {panel.keys} keys"
        f" and values at a time. {'; '.join(held)}."
    )
