"""The glossary of the GPU anatomy section: each term, its meaning, and its value for a kernel."""

from collections.abc import Callable, Iterator

from ...harness.audit.kernel_faults import spills
from ..analysis.audited_kernels import configuration, limit_text
from ..data.row_groups import Row
from ..formatting import plural, share_text
from ._kernel_cells import amount_text, copies_text, matrix_instruction, resources, spill_text

NONE = "not known"


def lines(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    """A term, its meaning, and its value for each of these kernels."""
    for term, meaning, value in TERMS:
        cells = [value(row) for row in rows]
        if any(cells):
            yield term, meaning, *(cell or "none" for cell in cells)


def _sm(row: Row) -> str:
    return f"{row['sm_most_warp_count']} warps, {row['sm_most_block_count']} blocks at most"


def _block(row: Row) -> str:
    return configuration(row["config"])


def _warp(row: Row) -> str:
    return f"{row['block_warp_count']} in a block of {32 * row['block_warp_count']} threads"


def _registers(row: Row) -> str:
    return f"{row['thread_register_count']} of 255"


def _room(name: str) -> Callable[[Row], str]:
    """`57,344 of 65,536: 1 block`; "" if the SM has no such resource."""

    def value(row: Row) -> str:
        known = {one: (taken, capacity) for one, taken, capacity in resources(row)}
        if name not in known:
            return ""
        taken, capacity = (amount_text(name, count) for count in known[name])
        unit = " columns" if name == "tensor_memory" else ""
        room = plural(row["block_limits"].get(name, 0), "block")
        return f"{taken} of {capacity}{unit}: {room}" if known[name][1] else ""

    return value


def _occupancy(row: Row) -> str:
    warps = f"{row['sm_warp_count']} of {row['sm_most_warp_count']} warps"
    return f"{warps}: {share_text(row['occupancy_ratio'])}"


def _spilled(row: Row) -> str:
    found = spills(row)
    return NONE if found is None else spill_text(row) if found else "nothing"


def _matrix(row: Row) -> str:
    name, mix = matrix_instruction(row), row.get("instructions")
    return NONE if mix is None else f"{mix[name]} {name}" if name else ""


def _copies(row: Row) -> str:
    mix = row.get("instructions")
    return NONE if mix is None else copies_text(mix)


def _exponentials(row: Row) -> str:
    mix = row.get("instructions")
    if mix is None:
        return NONE
    return f"{mix.get('MUFU.EX2', 0)} of {sum(mix.values()):,} instructions"


# Term, meaning, and how its value is taken from a row.
TERMS: tuple[tuple[str, str, Callable[[Row], str]], ...] = (
    (
        "SM",
        "Streaming multiprocessor. A GPU has from dozens to well over a hundred; each works"
        " independently, with its own registers, shared memory and tensor cores.",
        _sm,
    ),
    (
        "block",
        "The threads that share one piece of work, here a tile of queries against tiles of keys. A"
        " block runs on one SM until it ends; other blocks wait until there is room.",
        _block,
    ),
    (
        "warp",
        "32 threads that execute each step together. An SM has four schedulers; in every cycle each"
        " picks a warp that is not waiting, so more warps hide more waiting.",
        _warp,
    ),
    (
        "registers of a thread",
        "Where a thread keeps the values that it computes with, 32 bits each.",
        _registers,
    ),
    (
        "registers of a block",
        "The registers of all its threads, allocated as long as the block lives, in steps of 8 per"
        " thread.",
        _room("registers"),
    ),
    (
        "shared memory",
        "Fast memory of the SM that all threads of a block can access; it holds tiles of queries,"
        " keys and values. The system reserves 1 KiB per block.",
        _room("shared_memory"),
    ),
    (
        "tensor memory",
        "Where matrix products on 10.x and 11.0 keep their sums. A block waits until enough of it"
        " is free.",
        _room("tensor_memory"),
    ),
    ("occupancy", "Warps resident on an SM over the most that it can hold.", _occupancy),
    ("limited by", "The resource that runs out first, so no further block fits.", limit_text),
    (
        "spill",
        "A value without a register goes to local memory, behind the caches, and is loaded again"
        " when it is needed.",
        _spilled,
    ),
    (
        "matrix products",
        "Instructions that multiply tiles on tensor cores. HMMA: each warp on its own. HGMMA: four"
        " warps together, from shared memory. UTCHMMA: one thread starts them, the sums go to"
        " tensor memory. Static count in the code: a loop counts once.",
        _matrix,
    ),
    (
        "copies",
        "Instructions that bring tiles into shared memory while the SM computes: LDGSTS by every"
        " thread, TMA as whole tiles.",
        _copies,
    ),
    (
        "exponentials",
        "Powers of two (MUFU.EX2) for the softmax. They have a unit of their own, a few per cycle.",
        _exponentials,
    ),
)
