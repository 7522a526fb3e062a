"""The words of the section on GPU anatomy, and its cells: what an SM has, what a block takes of it, and every kernel in a line."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..analysis.kernels import configuration, limit_text, spills
from ..analysis.problems import Row
from ..words import STATUS_WORDS, bytes_text, number_text, plural

MATRIX = ("UTCHMMA", "HGMMA", "HMMA")
NONE = "not known"


def lines(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """A word, what it means, and what it comes to for each of these kernels."""
    for word, meaning, said in WORDS:
        cells = [said(row) for row in rows]
        if any(cells):
            yield word, meaning, *(cell or "none" for cell in cells)


def _sm(row: Row) -> str:
    return f"{row['sm_most_warp_count']} warps, {row['sm_most_block_count']} blocks at most"


def _block(row: Row) -> str:
    return configuration(row["config"])


def _warp(row: Row) -> str:
    return f"{row['block_warp_count']} in a block of {32 * row['block_warp_count']} threads"


def _registers(row: Row) -> str:
    return f"{row['thread_register_count']} of 255"


def _room(name: str) -> Callable[[Row], str]:
    """`57,344 of 65,536: 1 block`; "" where there is no such resource."""

    def said(row: Row) -> str:
        taken, capacity = {one: (taken, capacity) for one, taken, capacity in resources(row)}.get(name, (0, 0))
        unit = " columns" if name == "tensor_memory" else ""
        room = plural(row["block_limits"].get(name, 0), "block")
        return f"{_amount(name, taken)} of {_amount(name, capacity)}{unit}: {room}" if capacity else ""

    return said


def _occupancy(row: Row) -> str:
    return f"{row['sm_warp_count']} of {row['sm_most_warp_count']} warps: {number_text(100 * row['occupancy_ratio'])} %"


def _spilled(row: Row) -> str:
    found = spills(row)
    return NONE if found is None else _spill_text(row) if found else "nothing"


def _spill_text(row: Row) -> str:
    if row.get("spill_store_bytes") is None:
        return f"{row['thread_stack_bytes']} B of stack"
    return f"{row['spill_store_bytes']} B stored, {row['spill_load_bytes']} B loaded"


def _matrix(row: Row) -> str:
    name = matrix_instruction(row)
    return NONE if row.get("instructions") is None else f"{row['instructions'][name]} {name}" if name else ""


def _copies(row: Row) -> str:
    mix = row.get("instructions")
    return NONE if mix is None else ", ".join(f"{mix[name]} {name}" for name in ("TMA", "LDGSTS") if mix.get(name))


def _exponentials(row: Row) -> str:
    mix = row.get("instructions")
    return NONE if mix is None else f"{mix.get('MUFU.EX2', 0)} of {sum(mix.values()):,} instructions"


WORDS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    (
        "SM",
        "Streaming multiprocessor. A GPU is dozens of them to well over a hundred; each works by itself and has registers, shared memory "
        "and tensor cores of its own.",
        _sm,
    ),
    (
        "block",
        "The threads that share one piece of work, here a tile of queries against tiles of keys. A block is put on one SM and stays there "
        "until it ends; others wait until there is room.",
        _block,
    ),
    (
        "warp",
        "32 threads that take each step together. An SM has four schedulers; each picks in every cycle a warp that is not waiting, so the "
        "more warps there are, the more waiting is hidden.",
        _warp,
    ),
    ("registers of a thread", "Where a thread keeps the values that it computes with, 32 bits each.", _registers),
    (
        "registers of a block",
        "Those of all its threads. They are taken for as long as the block lives, and in steps of 8 a thread.",
        _room("registers"),
    ),
    (
        "shared memory",
        "Fast memory of the SM that all threads of a block see; tiles of queries, keys and values lie here. The system keeps 1 KiB of "
        "every block.",
        _room("shared_memory"),
    ),
    (
        "tensor memory",
        "Where matrix products of 10.x and 11.0 leave their sums. A block that finds none free waits.",
        _room("tensor_memory"),
    ),
    ("occupancy", "Warps that an SM holds at once over the most that it could hold.", _occupancy),
    ("limited by", "What ends first, so that no further block fits.", limit_text),
    (
        "spill",
        "A value for which no register was left goes to local memory, behind the caches, and comes back when it is needed.",
        _spilled,
    ),
    (
        "matrix products",
        "Instructions that multiply tiles on tensor cores. HMMA: each warp by itself. HGMMA: four warps together, from shared memory. "
        "UTCHMMA: one thread starts them, the sums go to tensor memory. Counted as they stand in the code: a loop counts once.",
        _matrix,
    ),
    (
        "copies",
        "Instructions that bring tiles into shared memory while the SM computes: LDGSTS by every thread, TMA as whole tiles.",
        _copies,
    ),
    (
        "exponentials",
        "Powers of two (MUFU.EX2), of which the softmax is made. They run on a unit of their own, a few per cycle.",
        _exponentials,
    ),
)


def matrix_instruction(row: Mapping[str, Any]) -> str | None:
    mix = row.get("instructions") or {}
    return next((name for name in MATRIX if mix.get(name)), None)


def resources(row: Row) -> Iterator[tuple[str, int, int]]:
    """Of an SM: name, what one block takes, what there is."""
    yield "registers", row["allocated_register_count"], row["sm_register_count"]
    yield "shared_memory", row["allocated_shared_bytes"], row["sm_shared_bytes"]
    if row.get("tensor_memory_column_count") and row.get("sm_tensor_memory_column_count"):
        yield "tensor_memory", row["tensor_memory_column_count"], row["sm_tensor_memory_column_count"]
    yield "warps", row["block_warp_count"], row["sm_most_warp_count"]


def budget(row: Row) -> Iterator[tuple[str, ...]]:
    """The cells of a figure's table."""
    for name, taken, capacity in resources(row):
        yield name.replace("_", " "), _amount(name, taken), _amount(name, capacity), str(row["block_limits"].get(name, ""))


def note(name: str, blocks: int, taken: int, capacity: int) -> str:
    """`2 x 26,624 of 65,536`."""
    return f"{blocks} \N{MULTIPLICATION SIGN} {_amount(name, taken)} of {_amount(name, capacity)}"


def _amount(name: str, count: int) -> str:
    return bytes_text(count) if name == "shared_memory" else f"{count:,}"


def subject(row: Row) -> str:
    return f"{row['kernel']} kernel ({row['dtype']}, heads {row['d_k']} wide{', causal' if row['causal'] else ''})"


def complaint(row: Row) -> tuple[str, ...]:
    """The cells of a kernel that is not well."""
    if row["status"] != "ok":
        why = f"{STATUS_WORDS[row['status']]}: {row['reason']}"
    else:
        why = f"spills: {_spill_text(row)}" if spills(row) else "could not be read"
    return subject(row), configuration(row["config"]), _count(row.get("thread_register_count")), why


COLUMNS = (
    *("kernel", "dtype", "head", "causal", "configuration", "place in its list", "registers", "shared", "spilled", "blocks", "warps"),
    *("occupancy", "limited by", "matrix products", "copies", "exponentials", "instructions"),
)


def cells(row: Row) -> tuple[str, ...]:
    head = str(row["d_k"]) if row["d_k"] == row["d_v"] else f"{row['d_k']}/{row['d_v']}"
    name = (row["kernel"], row["dtype"], head, "yes" if row["causal"] else "no", configuration(row["config"]), str(row["rank"]))
    if row["status"] != "ok":
        return (*name, f"{STATUS_WORDS[row['status']]}: {row['reason']}", *[""] * (len(COLUMNS) - len(name) - 1))
    mix, matrix = row.get("instructions"), matrix_instruction(row)
    return (
        *name,
        _count(row.get("thread_register_count")),
        bytes_text(row.get("block_shared_bytes")),
        "" if spills(row) is None else _spill_text(row) if spills(row) else "0",
        _count(row.get("sm_block_count")),
        _count(row.get("sm_warp_count")),
        "" if row.get("occupancy_ratio") is None else f"{number_text(100 * row['occupancy_ratio'])} %",
        limit_text(row),
        f"{mix[matrix]} {matrix}" if mix and matrix else "",
        _copies(row) if mix else "",
        _count(mix.get("MUFU.EX2")) if mix else "",
        _count(row.get("instruction_count")),
    )


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
